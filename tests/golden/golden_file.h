// Reads PyTorch's results, which tools/pytorch wrote to tests/golden.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/core/file.h"
#include "framework/device/shape.h"
#include "tests/support/golden_inputs.h"
#include "tests/support/layer_run.h"

namespace dtrain::golden {

inline const std::filesystem::path kSource = DTRAIN_SOURCE_DIR;

inline nlohmann::json File(const std::string& name) {
  return nlohmann::json::parse(ReadFile(kSource / "tests" / "golden" / name));
}

// Returns the input shapes of a one-layer case.
inline std::vector<Shape> InputShapes(const nlohmann::json& one) {
  std::vector<Shape> shapes;
  for (const std::vector<int64_t> extents : one.at("inputs")) shapes.emplace_back(extents);
  return shapes;
}

// Fills the array with scale * Unit + offset.
inline void Fill(LayerArray& array, uint64_t stream, float scale, float offset = 0) {
  for (size_t i = 0; i < array.values.size(); ++i) {
    array.values[i] = scale * Unit(stream, i) + offset;
  }
}

}  // namespace dtrain::golden
