// Files of numbers for the tests of own data sets.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "framework/data/dataset.h"

namespace dtrain {

// Returns the header of a .npy file as NumPy writes it, format version 1.
inline std::string NpyHeaderText(const std::string& descr, const std::string& shape,
                                 const std::string& order = "False") {
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': ({}), }}", descr, order, shape);
  header.resize((10 + header.size()) / 64 * 64 + 54, ' ');
  header.back() = '\n';
  const auto length = static_cast<uint16_t>(header.size());
  std::string file = "\x93NUMPY";
  file += {1, 0, static_cast<char>(length & 255), static_cast<char>(length >> 8)};
  return file + header;
}

template <class T>
std::string NpyOf(const std::string& descr, const std::string& shape,
                  const std::vector<T>& values) {
  std::string file = NpyHeaderText(descr, shape);
  file.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  return file;
}

// Returns sample `index` of a split and its label.
inline std::pair<std::vector<float>, float> SampleOf(const Dataset& set, Split split,
                                                     int64_t index) {
  Batch batch(set.fields(), 1);
  batch.Resize(1);
  const int64_t indices[] = {index};
  set.Fill(split, indices, kNoEpoch, batch);
  const Tensor& data = batch.fields[0];
  const Tensor& label = batch.fields[1];
  return {std::vector<float>(data.f32(), data.f32() + data.shape.count()),
          label.dtype == DType::kI32 ? static_cast<float>(label.i32()[0]) : label.f32()[0]};
}

}  // namespace dtrain
