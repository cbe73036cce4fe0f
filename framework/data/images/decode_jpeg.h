// JPEG files as bytes (libjpeg-turbo).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "framework/data/images/pixels.h"

namespace dtrain {

// From the header alone.  Both throw DataError that names the file, where it is damaged or too large.
PictureSize JpegSize(std::string_view file, const std::string& name);

// `needed` maps the size of the image to the one that is enough: it is decoded at the smallest of its sizes (N eighths)
// that is no smaller.  Grey of a coloured JPEG is made of its colours (GreyOf), not taken from its stored luma: the two
// differ where red, green or blue was clipped to 0 or 255.
Pixels DecodeJpeg(std::string_view file, const std::string& name, int64_t channels,
                  const std::function<PictureSize(const PictureSize&)>& needed);

}  // namespace dtrain
