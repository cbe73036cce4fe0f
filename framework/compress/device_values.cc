#include "framework/compress/device_values.h"

#include <fmt/format.h>

#include <map>

#include "framework/core/error.h"

namespace dtrain {
namespace {

std::map<DeviceKind, DeviceValuesMaker>& Makers() {
  static std::map<DeviceKind, DeviceValuesMaker> makers;
  return makers;
}

}  // namespace

bool AddDeviceValues(DeviceKind device, DeviceValuesMaker make) {
  return Makers().emplace(device, std::move(make)).second;
}

std::unique_ptr<DeviceValues> MakeDeviceValues(const Device& device) {
  const auto it = Makers().find(device.kind);
  if (it == Makers().end()) {
    throw ConfigError(fmt::format("device '{}' has no selections", NameOf(device.kind)),
                      "device: cpu");
  }
  return it->second(device);
}

}  // namespace dtrain
