// Reads NumPy's .npy files (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html, versions 1 to 3):
// one array, in little-endian or single bytes and C order.  Plain or .gz.
//
// A file must hold exactly what its header says; anything else, an unsupported type of values and Fortran order are a
// DataError that names the file and says how to write it with NumPy.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "framework/data/tables/table.h"
#include "framework/device/shape.h"

namespace dtrain {

struct NpyHeader {
  char kind = 'f';  // f: floats, i and u: whole numbers with and without a sign, b: booleans
  int64_t value_bytes = 4;  // 4 or 8; for whole numbers also 1 or 2
  Shape shape;
  bool bytes() const { return kind == 'u' && value_bytes == 1; }
};

struct NpyArray : NpyHeader {
  TableValues values;  // bytes if bytes(), else numbers, all finite as floats
};

// The part to read of an array's samples, [N, ...].
struct NpyPart {
  int64_t keep = kKeepAll;  // only the first `keep` samples are kept
  // Computes the moments of all samples even if not all are kept; if false, no more than these are read.
  bool measure = false;
  bool channels_last = false;  // [N, H, W, C]: converted to [N, C, H, W]
};

NpyHeader ReadNpyHeader(const std::filesystem::path& path);
NpyArray ReadNpy(const std::filesystem::path& path);
TableValues ReadNpyPart(const std::filesystem::path& path, const NpyPart& part);

// Converts samples [N, H, W, C] to [N, C, H, W].
void ChannelsToFront(NpyArray& array);

// Converts the samples of `path` to a model's `shape`: channels that come last are moved to the front, grey images may
// lack the channel axis, and single numbers their axis.  Throws DataError if they do not fit, or if it is ambiguous
// which axis has the channels because both orders have the same shape.
void FitSamples(const std::filesystem::path& path, const Shape& shape, NpyArray& array);

}  // namespace dtrain
