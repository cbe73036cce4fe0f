#include "framework/nn/kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "framework/core/error.h"

namespace dtrain {
namespace {

using Key = std::pair<std::string, DeviceKind>;

std::map<Key, std::vector<KernelEntry>>& Entries() {
  static std::map<Key, std::vector<KernelEntry>> entries;
  return entries;
}

std::map<Key, InsertedKernels::Maker>& Makers() {
  static std::map<Key, InsertedKernels::Maker> makers;
  return makers;
}

}  // namespace

KernelName::KernelName(const std::string& name) : implementation(name.substr(0, name.find(':'))) {
  if (implementation.size() < name.size()) choice = name.substr(implementation.size() + 1);
}

bool KernelRegistry::Add(const std::string& layer_type, DeviceKind device, KernelEntry entry) {
  // Sorted by name: registration runs in link order, which must not decide which kernel is chosen.
  std::vector<KernelEntry>& kernels = Entries()[{layer_type, device}];
  const auto place = std::lower_bound(kernels.begin(), kernels.end(), entry,
                                      [](const KernelEntry& a, const KernelEntry& b) {
                                        return a.implementation < b.implementation;
                                      });
  if (place != kernels.end() && place->implementation == entry.implementation) return false;
  kernels.insert(place, std::move(entry));
  return true;
}

const std::vector<KernelEntry>& KernelRegistry::Of(const std::string& layer_type,
                                                   DeviceKind device) {
  return Entries()[{layer_type, device}];
}

KernelOffer FollowInput(const KernelRequest& request) {
  KernelOffer offer;
  offer.inputs.assign(request.inputs.size(), request.available.at(0));
  offer.outputs.assign(request.outputs.size(), request.available.at(0));
  return offer;
}

KernelOffer AllPlain(const KernelRequest& request) {
  KernelOffer offer;
  offer.inputs.assign(request.inputs.size(), Form());
  offer.outputs.assign(request.outputs.size(), Form());
  return offer;
}

std::optional<KernelOffer> OfferPlain(const KernelRequest& request) {
  if (request.fused_relu) return std::nullopt;
  return AllPlain(request);
}

std::optional<KernelOffer> OfferElementwise(const KernelRequest& request) {
  if (request.fused_relu) return std::nullopt;
  return FollowInput(request);
}

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
