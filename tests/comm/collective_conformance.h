// The requirements on every collective (framework/comm/collective.h), as scenarios that each rank runs over its
// transport.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "framework/comm/collective.h"
#include "framework/core/random.h"

namespace dtrain {

inline std::vector<float> DrawGradient(Rank rank, int64_t n, int salt) {
  const Random random(17, Purpose::kSelfTest, static_cast<uint64_t>(rank),
                      static_cast<uint64_t>(salt));
  std::vector<float> values(n);
  for (int64_t i = 0; i < n; ++i) {
    values[i] = random.Uniform(2 * i, -1.0f, 1.0f) *
                std::pow(10.0f, random.Uniform(2 * i + 1, -3.0f, 3.0f));
  }
  return values;
}

// Values whose sum depends on the order of the additions, with magnitudes from 1e-3 to 1e3.
//
// Every rank needs the values of all ranks for each sum, and drawing takes longer than summing, so the common ones are
// drawn once.  No lock guards them: ThreadSanitizer would take a lock for an order between the ranks.
inline std::vector<float> GradientOf(Rank rank, int64_t n, int salt = 0) {
  constexpr int kRanks = 8, kSalts = 25;
  struct Drawn {
    std::once_flag once;
    std::vector<float> values;
  };
  static std::array<Drawn, kRanks * kSalts> all;
  const int64_t longest = salt == 0 ? 100'003 : 9000;
  if (rank >= kRanks || salt < 0 || salt >= kSalts || n > longest)
    return DrawGradient(rank, n, salt);
  Drawn& drawn = all[rank * kSalts + salt];
  std::call_once(drawn.once, [&] { drawn.values = DrawGradient(rank, longest, salt); });
  return {drawn.values.begin(), drawn.values.begin() + n};
}

// Returns ((g0 + g1) + g2) + ...
inline std::vector<float> CanonicalSum(int ranks, int64_t n, int salt = 0) {
  std::vector<float> sum = GradientOf(0, n, salt);
  for (Rank rank = 1; rank < ranks; ++rank) {
    const std::vector<float> more = GradientOf(rank, n, salt);
    for (int64_t i = 0; i < n; ++i) sum[i] += more[i];
  }
  return sum;
}

inline bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

// Checks `got` against the sum in double precision.  The tolerance is the rounding of single precision: half a unit of
// the largest possible partial sum for each addition.
inline void ExpectNearTheSum(const std::vector<float>& got, int ranks, int salt) {
  const size_t n = got.size();
  std::vector<double> sum(n, 0), magnitude(n, 0);
  for (Rank rank = 0; rank < ranks; ++rank) {
    const std::vector<float> term = GradientOf(rank, static_cast<int64_t>(n), salt);
    // Through pointers, since ThreadSanitizer also checks each read of a vector's own pointer.
    const float* from = term.data();
    double *to = sum.data(), *bound = magnitude.data();
    for (size_t i = 0; i < n; ++i) {
      to[i] += double{from[i]};
      bound[i] += std::abs(double{from[i]});
    }
  }
  const float* found = got.data();
  const double *expected = sum.data(), *bound = magnitude.data();
  for (size_t i = 0; i < n; ++i) {
    const double tolerance = (ranks - 1) * 0x1p-24 * bound[i] * 1.01;
    if (std::abs(double{found[i]} - expected[i]) <= tolerance)
      continue;  // a million ASSERT_NEARs take long
    ASSERT_NEAR(found[i], expected[i], tolerance) << "at " << i;
  }
}

inline void ExpectSum(const std::string& name, const std::vector<float>& got, int ranks,
                      int salt = 0) {
  ExpectNearTheSum(got, ranks, salt);
  if (name != "ordered") return;
  const auto n = static_cast<int64_t>(got.size());
  EXPECT_TRUE(SameBits(got, CanonicalSum(ranks, n, salt))) << n << " floats, not the canonical sum";
}

// Returns two nodes, of different size if there are more than two ranks.
inline std::vector<int> TestNodes(int ranks) {
  std::vector<int> nodes(ranks, 0);
  for (Rank rank = 0; rank < ranks; ++rank) nodes[rank] = 3 * rank >= 2 * ranks ? 1 : 0;
  return nodes;
}

inline std::vector<int64_t> SizesFor(int ranks) {
  return {0, 1, ranks - 1, ranks, ranks + 1, 4095, 4097, 100'003};
}

inline void SumsOfAllSizes(Transport& transport, const std::string& name, int64_t chunk_bytes) {
  const auto collective = MakeCollective(
      name, transport, {.chunk_bytes = chunk_bytes, .node_of = TestNodes(transport.size())});
  EXPECT_EQ(collective->name(), name);
  for (const int64_t n : SizesFor(transport.size())) {
    std::vector<float> data = GradientOf(transport.rank(), n);
    const int64_t ticket = collective->Start(data);
    WaitFor(*collective, ticket);
    EXPECT_TRUE(collective->Done(ticket));
    EXPECT_TRUE(collective->Idle());
    ExpectSum(name, data, transport.size());
  }
}

// Starts many reductions one by one with some progress in between, as a backward pass starts its buckets; the ranks
// progress at different speeds.
inline void ManyInFlight(Transport& transport, const std::string& name, bool overlap) {
  constexpr int kReductions = 25;
  const auto collective = MakeCollective(
      name, transport,
      {.chunk_bytes = 4096, .node_of = TestNodes(transport.size()), .overlap = overlap});
  std::vector<std::vector<float>> data;
  for (int i = 0; i < kReductions; ++i) {
    data.push_back(GradientOf(transport.rank(), (i * 977) % 9000, i));
  }
  for (int i = 0; i < kReductions; ++i) {
    EXPECT_EQ(collective->Start(data[i]), i);
    for (int k = 0; k < (i * 7 + transport.rank() * 3) % 5; ++k) collective->Progress();
  }
  for (int i = kReductions - 1; i >= 0; --i) WaitFor(*collective, i);
  EXPECT_TRUE(collective->Idle());
  EXPECT_FALSE(collective->Progress());
  for (int i = 0; i < kReductions; ++i) ExpectSum(name, data[i], transport.size(), i);
}

// Two collectives on one transport, used in turn, must not take each other's messages.
inline void CollectivesInTurn(Transport& transport, const std::string& name) {
  const auto first = MakeCollective(name, transport);
  const auto second = MakeCollective(name, transport);
  for (int i = 0; i < 3; ++i) {
    for (Collective* collective : {first.get(), second.get()}) {
      std::vector<float> data = GradientOf(transport.rank(), 5000, i);
      WaitFor(*collective, collective->Start(data));
      ExpectSum(name, data, transport.size(), i);
    }
  }
}

// Every rank gets the same bits, and again in a second run.
inline void RepeatsToTheBit(Transport& transport, const std::string& name) {
  constexpr int64_t kFloats = 70'001;
  const auto collective = MakeCollective(name, transport);
  std::vector<float> once = GradientOf(transport.rank(), kFloats);
  std::vector<float> again = once;
  WaitFor(*collective, collective->Start(once));
  WaitFor(*collective, collective->Start(again));
  EXPECT_TRUE(SameBits(once, again));
  std::vector<float> rank0 = once;
  const auto ordered = MakeCollective("ordered", transport);
  if (transport.rank() != 0) std::fill(rank0.begin(), rank0.end(), 0.0f);
  WaitFor(*ordered, ordered->Start(rank0));
  EXPECT_EQ(rank0, once);
}

inline void RunCollectiveConformance(Transport& transport, const std::string& name) {
  SumsOfAllSizes(transport, name, 0);
  SumsOfAllSizes(transport, name, 4);
  SumsOfAllSizes(transport, name, 10'000);
  ManyInFlight(transport, name, false);
  ManyInFlight(transport, name, true);
  CollectivesInTurn(transport, name);
  RepeatsToTheBit(transport, name);
}

}  // namespace dtrain
