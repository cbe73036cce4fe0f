// Sums over the memory of GPUs, and training by several ranks whose weights and gradients stay there.
#include "framework/comm/peer_collective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "framework/comm/backoff.h"
#include "framework/comm/device_collective.h"
#include "tests/comm/collective_conformance.h"
#include "tests/cuda/standin_counts.h"
#include "tests/cuda/step_rig.h"

namespace dtrain {
namespace {

// A vector in the memory of the device under test.
class OnGpu {
 public:
  explicit OnGpu(const std::vector<float>& values)
      : size_(static_cast<int64_t>(values.size())),
        buffer_(DeviceUnderTest(), std::max<size_t>(values.size(), 1) * sizeof(float)) {
    CopyIn(buffer_.arena(), values.data(), size_);
  }
  std::span<float> floats() const { return {buffer_.f32(), static_cast<size_t>(size_)}; }
  std::vector<float> values() const { return FloatsOf(buffer_.arena(), size_); }

 private:
  int64_t size_;
  Buffer buffer_;
};

class PeerCollectiveTest : public ::testing::TestWithParam<int> {};

TEST_P(PeerCollectiveTest, AddsInRankOrderToTheBit) {
  LocalWorld::Run(GetParam(), [](Transport& transport) {
    ASSERT_EQ(DeviceCollectiveRegistry::Get("collective", "ordered")
                  .why_not(transport, DeviceUnderTest()),
              "");
    PeerCollective collective(transport, DeviceUnderTest());
    for (const int64_t n : SizesFor(transport.size())) {
      const OnGpu vector(GradientOf(transport.rank(), n));
      WaitFor(collective, collective.Start(vector.floats()));
      EXPECT_TRUE(SameBits(vector.values(), CanonicalSum(transport.size(), n))) << n << " floats";
      collective.Rest();
      transport.Barrier();  // no rank frees what another reads
    }
  });
}

TEST_P(PeerCollectiveTest, ManyInFlight) {
  constexpr int kSums = 25;
  LocalWorld::Run(GetParam(), [](Transport& transport) {
    PeerCollective collective(transport, DeviceUnderTest());
    std::vector<OnGpu> vectors;
    for (int i = 0; i < kSums; ++i) {
      vectors.emplace_back(GradientOf(transport.rank(), (i * 977) % 9000, i));
    }
    for (int i = 0; i < kSums; ++i) {
      EXPECT_EQ(collective.Start(vectors[static_cast<size_t>(i)].floats()), i);
      for (int k = 0; k < (i * 7 + transport.rank() * 3) % 5; ++k) collective.Progress();
    }
    for (int i = kSums - 1; i >= 0; --i) WaitFor(collective, i);
    EXPECT_TRUE(collective.Idle());
    for (int i = 0; i < kSums; ++i) {
      const std::vector<float> sum = vectors[static_cast<size_t>(i)].values();
      EXPECT_TRUE(SameBits(sum, CanonicalSum(transport.size(), std::ssize(sum), i))) << i;
    }
    transport.Barrier();
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, PeerCollectiveTest, ::testing::Values(1, 2, 3, 4, 5));

TEST(PeerCollectiveLimits, ThirtyThreeRanksAreTooMany) {
  LocalWorld::Run(33, [](Transport& transport) {
    EXPECT_EQ(DeviceCollectiveRegistry::Get("collective", "ordered")
                  .why_not(transport, DeviceUnderTest()),
              "a GPU adds the gradients of 32 ranks at most");
  });
}

// All ranks together read each vector twice or so, and write it once: (P + 1) / P and 1 of it to add, and as much as the
// blocks of the others to copy.
TEST(PeerCollectiveCosts, NoByteOfAVectorPassesThroughTheHost) {
  if (!Counter::Counts()) return;
  constexpr int kRanks = 4;
  constexpr int64_t kFloats = 64 * 1024;
  Counter counter;
  LocalWorld::Run(kRanks, [&](Transport& transport) {
    PeerCollective collective(transport, DeviceUnderTest());
    const OnGpu vector(std::vector<float>(kFloats, 1.0f));
    transport.Barrier();
    if (transport.rank() == 0) counter.Forget();
    transport.Barrier();
    WaitFor(collective, collective.Start(vector.floats()));
    transport.Barrier();
    if (transport.rank() != 0) return transport.Barrier();
    const DeviceCounts counts = counter.Since();
    transport.Barrier();
    constexpr uint64_t kBytes = kFloats * sizeof(float);
    EXPECT_EQ(counts.up + counts.down, 0U);
    EXPECT_EQ(counts.waits, 0U);
    EXPECT_EQ(counts.read, (kRanks + kRanks - 1) * kBytes);
    EXPECT_EQ(counts.written, kRanks * kBytes);
    EXPECT_EQ(counts.kernels, kRanks * kRanks);
    EXPECT_EQ(collective.traffic().bytes_sent, collective.traffic().bytes_lent);
  });
}

class RanksOnAGpu : public ::testing::TestWithParam<int> {
 protected:
  // Trains `steps` steps, and returns the weights of each rank.  `then` runs on each rank before the end.
  static std::vector<std::vector<float>> Train(
      const std::string& more, int steps,
      const std::function<void(Transport&, NormedRig&)>& then = {}) {
    std::vector<std::vector<float>> weights(static_cast<size_t>(GetParam()));
    LocalWorld::Run(GetParam(), [&](Transport& transport) {
      NormedRig rig(DeviceUnderTest(),
                    "{name: sgd, momentum: 0.9, clip_norm: 0.5}\ncluster: {workers: " +
                        std::to_string(transport.size()) + "}\n" + more,
                    "0", {}, &transport);
      for (int i = 0; i < steps; ++i) EXPECT_TRUE(rig.Step().finite);
      if (then) then(transport, rig);
      weights[static_cast<size_t>(transport.rank())] = rig.Weights();
      transport.Barrier();
    });
    return weights;
  }
};

// Gradients of a run with another collective pass through host memory.
TEST_P(RanksOnAGpu, HaveTheWeightsThatHostMemoryGives) {
  const auto there = Train("", 5);
  for (const auto& weights : there) EXPECT_EQ(weights, there[0]);
  EXPECT_EQ(Train("strategy: wfbp", 5), there);
  if (GetParam() > 2) return;
  EXPECT_EQ(Train("collective: ring", 5), there) << "one addition, in any order";
}

// Selected entries pass through host memory, and are added there or on the GPU in the same order.
TEST_P(RanksOnAGpu, AddSelectionsAsInHostMemory) {
  for (const std::string compress :
       {"{name: topk, density: 0.01}", "{name: topk, density: 0.6, scope: model}",
        "{name: dgc, density: 0.05, density_warmup: [1], dense_steps: 2}",
        "{name: topk, density: 0.02, exchange: gtopk}"}) {
    SCOPED_TRACE(compress);
    const auto there = Train("compress: " + compress, 5);
    for (const auto& weights : there) EXPECT_EQ(weights, there[0]);
    // Ring adds whole vectors in another order: those of many entries, and of dense steps.
    const bool whole =
        compress.find("0.6") != std::string::npos || compress.find("dense") != std::string::npos;
    if (!whole || GetParam() == 2) {
      EXPECT_EQ(Train("collective: ring\ncompress: " + compress, 5), there);
    }
  }
}

TEST_P(RanksOnAGpu, CopyOfASelectionOnlyItsEntries) {
  if (!Counter::Counts()) return;
  Counter counter;
  const auto then = [&](Transport& transport, NormedRig& rig) {
    transport.Barrier();
    if (transport.rank() == 0) counter.Forget();
    transport.Barrier();
    rig.Step();
    transport.Barrier();
    if (transport.rank() == 0) {
      const auto ranks = static_cast<uint64_t>(transport.size());
      const uint64_t gradient = static_cast<uint64_t>(rig.graph().weights().size()) * sizeof(float);
      const uint64_t entries = gradient / 100 * 2 + 64;
      // The places of the own entries go up once more, to be taken out of the residual.
      EXPECT_LE(counter.Since().up, ranks * (rig.BatchBytes() + (ranks + 1) * entries));
      EXPECT_LE(counter.Since().down, ranks * gradient / 10);
    }
    transport.Barrier();
  };
  Train("compress: {name: topk, density: 0.01}", 3, then);
}

TEST_P(RanksOnAGpu, CopyNothingButTheBatch) {
  if (!Counter::Counts()) return;
  Counter counter;
  Train("", 3, [&](Transport& transport, NormedRig& rig) {
    transport.Barrier();
    if (transport.rank() == 0) counter.Forget();
    transport.Barrier();
    rig.Step();
    transport.Barrier();
    if (transport.rank() == 0) {
      EXPECT_EQ(counter.Since().up, static_cast<uint64_t>(transport.size()) * rig.BatchBytes());
      EXPECT_EQ(counter.Since().down, 0U);
    }
    transport.Barrier();
  });
}

TEST_P(RanksOnAGpu, ANaNIsSeenByAllInItsStep) {
  Train("", 1, [](Transport& transport, NormedRig& rig) {
    if (transport.rank() == transport.size() - 1) {
      rig.batch().fields[0].f32()[3] = std::numeric_limits<float>::quiet_NaN();
    }
    EXPECT_FALSE(rig.Step().finite);
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, RanksOnAGpu, ::testing::Values(2, 4));

}  // namespace
}  // namespace dtrain
