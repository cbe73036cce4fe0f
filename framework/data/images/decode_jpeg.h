// Decodes JPEG files to bytes (libjpeg-turbo).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "framework/data/images/pixels.h"

namespace dtrain {

// Reads only the header.  Both functions throw DataError with the file's name if it is damaged or too large.
ImageSize JpegSize(std::string_view file, const std::string& name);

// `needed` maps the image's size to a sufficient one: the image is decoded at the smallest of libjpeg's sizes (N
// eighths) that is no smaller.  Grey from a colour JPEG is computed from its colours (GreyOf), not taken from the
// stored luma: the two differ where red, green or blue was clipped to 0 or 255.
Pixels DecodeJpeg(std::string_view file, const std::string& name, int64_t channels,
                  const std::function<ImageSize(const ImageSize&)>& needed);

}  // namespace dtrain
