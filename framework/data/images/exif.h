// The orientation that a camera notes in the EXIF block of an image.
#pragma once

#include <string_view>

namespace dtrain {

// EXIF's tag "Orientation" of a JPEG (segment APP1) or a PNG (chunk eXIf), given the whole file: 1, upright, to 8.
// It is 1 where the file has no such tag, where the block is damaged, and for other files.
int ExifOrientation(std::string_view file);

}  // namespace dtrain
