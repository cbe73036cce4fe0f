// HeightWidth: what a layer of images has twice, by rows and by columns (a window, a stride, a pad).
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

// A key to be read so.  `least` and `most` hold for both numbers.
struct HeightWidthKey {
  std::string key;
  HeightWidth default_value;
  int64_t least = 0;
  int64_t most = 0;
  std::string help;
  bool required = false;
};

// Another count of numbers than one or two is a mistake, and gives the default.
HeightWidth ReadHeightWidth(config::Reader& reader, const HeightWidthKey& key);

}  // namespace dtrain
