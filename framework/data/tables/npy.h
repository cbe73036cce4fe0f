// NumPy's .npy files (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html, versions 1 to 3):
// one array, in little-endian or single bytes and C order.  Plain or .gz.
//
// A file must hold exactly what its header says; every other state, another type of values and Fortran order are a
// DataError that names the file and says how NumPy would write it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "framework/data/tables/table.h"
#include "framework/device/shape.h"

namespace dtrain {

struct NpyHeader {
  char kind = 'f';  // f: floats, i and u: whole numbers with and without a sign, b: booleans
  int64_t value_bytes = 4;  // 4 and 8; of whole numbers 1 and 2 as well
  Shape shape;
  bool bytes() const { return kind == 'u' && value_bytes == 1; }
};

struct NpyArray : NpyHeader {
  TableValues values;  // bytes where bytes() says so, else numbers: rounded to 32 bits, all finite
};

// What is read of the samples of an array, [N, ...].
struct NpyPart {
  int64_t keep = kKeepAll;  // values of so many are kept, the first ones
  // Of all samples, where not all are kept; without, the file is read no further than that.
  bool measure = false;
  bool channels_last = false;  // [N, H, W, C]: they come out as [N, C, H, W]
};

NpyHeader ReadNpyHeader(const std::filesystem::path& path);
NpyArray ReadNpy(const std::filesystem::path& path);
TableValues ReadNpyPart(const std::filesystem::path& path, const NpyPart& part);

// Samples [N, H, W, C] become [N, C, H, W].
void ChannelsToFront(NpyArray& array);

// Brings the samples of `path` to what a model takes, `shape`: channels that come last are brought to the front, grey
// images may lack their channel, and single numbers their axis.  Throws DataError where they do not fit, or where
// [C, H, W] and [H, W, C] are the same shape.
void FitSamples(const std::filesystem::path& path, const Shape& shape, NpyArray& array);

}  // namespace dtrain
