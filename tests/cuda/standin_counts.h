// Counter tells what the stand-in has counted; a real GPU does not count.
#pragma once

#include <dlfcn.h>

#include <cstdint>

#include "framework/core/check.h"
#include "tests/cuda/module_under_test.h"
#include "tests/nn/layer_harness.h"

namespace dtrain {

// The members are in the order in which StandinCounts writes them (tests/cuda/standin/cudart.cc).
struct DeviceCounts {
  uint64_t launches = 0;           // by the host: of kernels, and of copies from or to the host
  uint64_t kernels = 0;            // a call of a library is one
  uint64_t waits = 0;              // of the host for the device
  uint64_t read = 0, written = 0;  // bytes of the device's memory, by kernels
  uint64_t up = 0, down = 0;       // bytes copied from and to the host
  uint64_t pageable = 0;           // bytes of both whose memory in the host is not pinned
};

// Returns function `name` of the stand-in.  REQUIRES: the tests run on it.
template <class Function>
Function* OfStandin(const char* name) {
  DeviceUnderTest();
  void* const module =
      ::dlopen(DTRAIN_BINARY_DIR "/tests/cuda_standin/libdtrain_cuda.so", RTLD_NOW | RTLD_NOLOAD);
  DT_CHECK(module != nullptr) << "the stand-in is not loaded";
  auto* const function = reinterpret_cast<Function*>(::dlsym(module, name));
  DT_CHECK(function != nullptr) << name;
  return function;
}

// Counts since its construction, or since the last Forget.
class Counter {
 public:
  Counter() { Forget(); }
  static bool Counts() { return !ModuleBesideTests(); }
  void Forget() {
    if (Counts()) before_ = Now();
  }
  DeviceCounts Since() const {
    const DeviceCounts now = Now();
    return {now.launches - before_.launches, now.kernels - before_.kernels,
            now.waits - before_.waits,       now.read - before_.read,
            now.written - before_.written,   now.up - before_.up,
            now.down - before_.down,         now.pageable - before_.pageable};
  }

 private:
  static DeviceCounts Now() {
    uint64_t c[8];
    OfStandin<void(uint64_t*)>("StandinCounts")(c);
    return {c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]};
  }
  DeviceCounts before_;
};

}  // namespace dtrain
