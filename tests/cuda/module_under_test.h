// Which CUDA module the tests of this folder run, in a build tree or in a bundle (tools/bundle.sh).
#pragma once

#include <cstdlib>
#include <filesystem>

#include "framework/core/process.h"

namespace dtrain {

// DTRAIN_TEST_GPU=1: the module beside the tests, as tests/gpu.sh asks.  Else the stand-in.
inline bool ModuleBesideTests() { return std::getenv("DTRAIN_TEST_GPU") != nullptr; }

inline std::filesystem::path ConfigsFolder() {
  const std::filesystem::path bundle = BundleFolder();
  return bundle.empty() ? DTRAIN_SOURCE_DIR "/configs" : bundle / "configs";
}

}  // namespace dtrain
