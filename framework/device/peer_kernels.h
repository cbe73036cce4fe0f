// PeerKernels are the kernels of sums over the memory of several devices (comm/peer_collective.h), implemented for one kind
// of device.  They run in the queue of `device`.
//
//   DTRAIN_PEER_KERNELS(DeviceKind::kCuda, kPeerKernels);    // framework/kernels/<device>/
#pragma once

#include <cstdint>
#include <span>

#include "framework/device/device.h"

namespace dtrain {

struct PeerKernels {
  // to[i] = (terms[0][i] + terms[1][i]) + ...  `to` may be one of the terms.
  void (*sum)(const Device& device, float* to, std::span<const float* const> terms, int64_t n);
  void (*copy)(const Device& device, float* to, const float* from, int64_t n);
  int most_terms;
};

bool AddPeerKernels(DeviceKind kind, const PeerKernels& kernels);
// REQUIRES: the kind of device has registered them.
const PeerKernels& PeerKernelsOf(const Device& device);

}  // namespace dtrain

#define DTRAIN_PEER_KERNELS(kind, kernels)                      \
  [[maybe_unused]] static const bool kernels##_are_registered = \
      ::dtrain::AddPeerKernels(kind, kernels)
