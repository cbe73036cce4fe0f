// Chooses the CUDA module that the tests of this folder run, in a build tree or in a bundle
// (tools/bundle.sh).
#pragma once

#include <cstdlib>
#include <filesystem>

#include "framework/core/process.h"

namespace dtrain {

// True if DTRAIN_TEST_GPU=1, which tests/gpu.sh sets: use the module beside the tests.  Otherwise
// the tests use the stand-in.
inline bool ModuleBesideTests() { return std::getenv("DTRAIN_TEST_GPU") != nullptr; }

inline std::filesystem::path ConfigsFolder() {
  const std::filesystem::path bundle = BundleFolder();
  return bundle.empty() ? DTRAIN_SOURCE_DIR "/configs" : bundle / "configs";
}

}  // namespace dtrain
