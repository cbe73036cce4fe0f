// The kernels of sums over the memory of several GPUs (comm/peer_collective.h).
//
// The file is compiled without fused multiply-add, as the solvers are.  Additions have the order of the ranks, so the sums
// are the CPU's to the bit.
#include <vector>

#include "framework/core/check.h"
#include "framework/device/peer_kernels.h"
#include "framework/kernels/cuda/loops.h"

namespace dtrain {
namespace {

constexpr int kMostTerms = 32;  // that one kernel adds; pointers are its arguments

struct RankTerms {
  const float* of[kMostTerms];
  int count;
};

void AddRankTerms(CudaQueue& queue, float* to, const RankTerms& terms, int64_t n) {
  std::vector<Access> reads;
  for (int k = 0; k < terms.count; ++k) reads.push_back(Reads(terms.of[k], n));
  ForEach(queue, {"sum of ranks", {Writes(to, n)}, {}, {}, reads}, n, [=] DT_DEVICE(int64_t i) {
    float sum = terms.of[0][i];
    for (int k = 1; k < terms.count; ++k) sum += terms.of[k][i];
    to[i] = sum;
  });
}

// `to` is a term of a block that only its owner writes, so a first part of the terms cannot be kept there.
void SumOfRanks(const Device& device, float* to, std::span<const float* const> terms, int64_t n) {
  DT_CHECK(terms.size() <= kMostTerms);
  RankTerms all{.count = static_cast<int>(terms.size())};
  std::ranges::copy(terms, all.of);
  AddRankTerms(QueueOf(device), to, all, n);
}

void CopyOfRank(const Device& device, float* to, const float* from, int64_t n) {
  QueueOf(device).Copy(to, from, static_cast<size_t>(n) * sizeof(float));
}

constexpr PeerKernels kPeerKernels = {SumOfRanks, CopyOfRank, kMostTerms};

DTRAIN_PEER_KERNELS(DeviceKind::kCuda, kPeerKernels);

}  // namespace
}  // namespace dtrain
