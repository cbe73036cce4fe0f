// Stands in for the CUDA module (device_key_test.cc): one that lists devices, or with
// DTRAIN_STRANGE_MODULE a library that exports something else.
#include "framework/device/cuda/module.h"

#include <cstring>

#ifndef DTRAIN_STRANGE_MODULE
extern "C" void DtrainCudaDevices(char* text, unsigned long bytes) {
  std::strncpy(text, "CUDA 0.0, an abacus", bytes);
}
#else
extern "C" int DtrainStrange() { return 0; }
#endif
