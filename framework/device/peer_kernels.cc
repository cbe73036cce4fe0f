#include "framework/device/peer_kernels.h"

#include <map>

namespace dtrain {
namespace {

std::map<DeviceKind, PeerKernels>& KernelsOfPeers() {
  static std::map<DeviceKind, PeerKernels> kernels;
  return kernels;
}

}  // namespace

bool AddPeerKernels(DeviceKind kind, const PeerKernels& kernels) {
  return KernelsOfPeers().emplace(kind, kernels).second;
}

const PeerKernels& PeerKernelsOf(const Device& device) { return KernelsOfPeers().at(device.kind); }

}  // namespace dtrain
