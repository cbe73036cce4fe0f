// Stands in for the CUDA module (device_key_test.cc): one of an earlier build, or with
// DTRAIN_STRANGE_MODULE a library that exports something else.
#include "framework/device/cuda/module.h"

#ifndef DTRAIN_STRANGE_MODULE
extern "C" const DtrainCudaModule* DtrainCuda() {
  static constexpr DtrainCudaModule kModule = {"0.0.9 abacus", nullptr, nullptr, nullptr};
  return &kModule;
}
#else
extern "C" int DtrainStrange() { return 0; }
#endif
