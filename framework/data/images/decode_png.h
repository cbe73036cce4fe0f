// PNG files as bytes (libpng).
//
// Values are taken as they are stored: gAMA, cHRM, sRGB and iCCP are passed over.  Palettes and grey of 1, 2 or 4
// bits become 8 bits, 16 bits round(v / 257).  What is transparent, by an alpha channel or by tRNS, is laid over
// white afterwards (OverWhite), before colours become grey (GreyOf).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "framework/data/images/pixels.h"

namespace dtrain {

// From the header alone.  Both throw DataError that names the file, where it is damaged or too large.
PictureSize PngSize(std::string_view file, const std::string& name);
Pixels DecodePng(std::string_view file, const std::string& name, int64_t channels);

}  // namespace dtrain
