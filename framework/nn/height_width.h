// HeightWidth is a property of an image layer with one number for rows and one for columns (a window, a stride, a pad).
//
//   kernel: 3            both
//   kernel: [3, 5]       height 3, width 5
#pragma once

#include <cstdint>
#include <string>

#include "framework/config/reader.h"

namespace dtrain {

struct HeightWidth {
  int64_t height = 1;
  int64_t width = 1;

  bool square() const { return height == width; }
  int64_t area() const { return height * width; }
  std::string ToString() const;  // "3", "[3, 5]"
  friend bool operator==(const HeightWidth&, const HeightWidth&) = default;
};

// Describes a config key of this form.  `least` and `most` bound both numbers.
struct HeightWidthKey {
  std::string key;
  HeightWidth default_value;
  int64_t least = 0;
  int64_t most = 0;
  std::string help;
  bool required = false;
};

// Reads the key.  Any other count of numbers than one or two is reported as an error; the default is returned.
HeightWidth ReadHeightWidth(config::Reader& reader, const HeightWidthKey& key);

}  // namespace dtrain
