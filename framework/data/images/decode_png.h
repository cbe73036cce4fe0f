// Decodes PNG files to bytes (libpng).
//
// Values are taken as they are stored: gAMA, cHRM, sRGB and iCCP are ignored.  Palettes and grey of 1, 2 or 4 bits
// become 8 bits; 16 bits become round(v / 257).  Then transparent pixels, by an alpha channel or by tRNS, are composed
// over white (OverWhite), before colours become grey (GreyOf).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "framework/data/images/pixels.h"

namespace dtrain {

// Reads only the header.  Both functions throw DataError with the file's name if it is damaged or too large.
ImageSize PngSize(std::string_view file, const std::string& name);
Pixels DecodePng(std::string_view file, const std::string& name, int64_t channels);

}  // namespace dtrain
