// Device: where memory lives and kernels run.
#pragma once

#include <string_view>

#include "framework/core/isa.h"
#include "framework/core/precision.h"

namespace dtrain {

enum class DeviceKind { kCpu, kCuda };

constexpr std::string_view NameOf(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kCpu:
      return "cpu";
    case DeviceKind::kCuda:
      return "cuda";
  }
  return "?";
}

// What a kernel may know about where it runs.
struct Device {
  DeviceKind kind = DeviceKind::kCpu;
  int threads = 1;           // of this rank's OpenMP team; see cpu/threads.h for the one budget
  Isa isa = Isa::kBaseline;  // for our own loops
  Precision precision = Precision::kFp32;  // of products, where a kernel offers it
};

}  // namespace dtrain
