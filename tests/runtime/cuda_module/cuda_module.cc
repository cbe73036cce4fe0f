// Replaces the CUDA module in device_key_test.cc.  DTRAIN_KIND selects a module of an earlier build, one that needs a
// library (`needy`), that library (`needed`), or one with another export.
#include "framework/device/cuda/module.h"

#define earlier 1
#define needy 2
#define needed 3
#define strange 4

#if DTRAIN_KIND == needy
extern "C" const char* DtrainNeeded();
#define DTRAIN_MODULE_BUILD DtrainNeeded()
#else
#define DTRAIN_MODULE_BUILD "0.0.9 abacus"
#endif

#if DTRAIN_KIND == needed
extern "C" const char* DtrainNeeded() { return "0.0.9 abacus"; }
#elif DTRAIN_KIND == strange
extern "C" int DtrainStrange() { return 0; }
#else
extern "C" const DtrainCudaModule* DtrainCuda() {
  static const DtrainCudaModule kModule = {DTRAIN_MODULE_BUILD, nullptr, nullptr, nullptr, nullptr};
  return &kModule;
}
#endif
