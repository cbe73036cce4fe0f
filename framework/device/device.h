// Device: where memory lives and kernels run.
#pragma once

#include <string_view>

#include "framework/core/isa.h"
#include "framework/core/precision.h"
#include "framework/device/ready_event.h"

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

// What a device has been asked to do and does in this order, while its kernels have long returned.
class DeviceQueue {
 public:
  virtual ~DeviceQueue() = default;
  // Comes to pass when all that was asked for before is done.
  virtual ReadyEvent Record() = 0;
};

// What a kernel may know about where it runs.
struct Device {
  DeviceKind kind = DeviceKind::kCpu;
  int threads = 1;           // of this rank's OpenMP team; see cpu/threads.h for the one budget
  Isa isa = Isa::kBaseline;  // for our own loops
  Precision precision = Precision::kFp32;  // of products, where a kernel offers it
  DeviceQueue* queue = nullptr;            // borrowed; null: a kernel that returns has computed

  // That all it was asked for until now is done.
  ReadyEvent Record() const { return queue == nullptr ? ReadyEvent() : queue->Record(); }
};

}  // namespace dtrain
