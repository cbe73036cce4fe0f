#include "framework/nn/inserted_kernel.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "framework/core/error.h"

namespace dtrain {
namespace {

using Key = std::pair<std::string, DeviceKind>;

std::map<Key, InsertedKernels::Maker>& Makers() {
  static std::map<Key, InsertedKernels::Maker> makers;
  return makers;
}

}  // namespace

bool InsertedKernels::Add(const std::string& name, DeviceKind device, Maker make) {
  return Makers().emplace(Key{name, device}, std::move(make)).second;
}

std::unique_ptr<Kernel> InsertedKernels::Make(const std::string& name, const Device& device,
                                              const std::string& where) {
  const auto it = Makers().find({name, device.kind});
  if (it == Makers().end()) {
    throw ConfigError(
        fmt::format("{}: device '{}' has no kernel '{}'", where, NameOf(device.kind), name),
        "device: cpu");
  }
  return it->second(device);
}

}  // namespace dtrain
