// Reads the orientation that a camera stores in an image's EXIF block.
#pragma once

#include <string_view>

namespace dtrain {

// Returns EXIF's tag "Orientation", 1 (upright) to 8, of a JPEG (segment APP1) or a PNG (chunk eXIf), given the whole
// file.  It is 1 if the file has no such tag, if the block is damaged, and for other files.
int ExifOrientation(std::string_view file);

}  // namespace dtrain
