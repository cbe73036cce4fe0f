// Tests sums with 16-bit messages, for every collective that is a schedule.
#include <gtest/gtest.h>

#include "framework/comm/local/local_world.h"
#include "tests/comm/collective_conformance.h"
#include "tests/support/worlds.h"

namespace dtrain {
namespace {

std::vector<float> RoundedGradient(Wire wire, Rank rank, int64_t n, int salt = 0) {
  std::vector<float> values = GradientOf(rank, n, salt);
  for (float& value : values) value = Rounded(wire, value);
  return values;
}

std::vector<std::string> Plans() {
  std::vector<std::string> names;
  for (const std::string& name : CollectiveNames()) {
    if (SumsRounded(name)) names.push_back(name);
  }
  return names;
}

// The result of a sum on every rank.
struct Ends {
  std::vector<std::vector<float>> sums, errors;
};

Ends SumOver(const std::string& name, int ranks, Wire wire, int64_t n, int64_t chunk_bytes) {
  Ends ends{std::vector<std::vector<float>>(static_cast<size_t>(ranks)),
            std::vector<std::vector<float>>(static_cast<size_t>(ranks))};
  LocalWorld::Run(ranks, [&](Transport& transport) {
    const auto collective = MakeCollective(
        name, transport, {.chunk_bytes = chunk_bytes, .node_of = TestNodes(ranks), .rounds = true});
    std::vector<float> data = RoundedGradient(wire, transport.rank(), n);
    std::vector<float> errors(data.size());
    WaitFor(*collective, collective->StartRounded(data, {wire, errors.data()}));
    ends.sums[transport.rank()] = data;
    ends.errors[transport.rank()] = errors;
  });
  return ends;
}

class RoundedSumTest : public testing::TestWithParam<std::tuple<std::string, int>> {};

TEST_P(RoundedSumTest, LosesNothingAndAgreesOnAllRanks) {
  const auto& [name, ranks] = GetParam();
  for (const Wire wire : {Wire::kFp16, Wire::kBf16}) {
    for (const int64_t n : {1, 100, 20'011, 60'001}) {
      const Ends ends = SumOver(name, ranks, wire, n, 1 << 14);
      for (int rank = 1; rank < ranks; ++rank) {
        ASSERT_TRUE(SameBits(ends.sums[rank], ends.sums[0])) << n << " at rank " << rank;
      }
      std::vector<double> given(static_cast<size_t>(n)), magnitude(given.size());
      for (int rank = 0; rank < ranks; ++rank) {
        const std::vector<float> mine = RoundedGradient(wire, rank, n);
        for (size_t i = 0; i < mine.size(); ++i) {
          given[i] += static_cast<double>(mine[i]) - static_cast<double>(ends.errors[rank][i]);
          magnitude[i] += std::abs(static_cast<double>(mine[i]));
        }
      }
      for (size_t i = 0; i < given.size(); ++i) {
        ASSERT_NEAR(static_cast<double>(ends.sums[0][i]), given[i],
                    2 * ranks * 0x1p-24 * magnitude[i])
            << n << " at " << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Plans, RoundedSumTest,
                         testing::Combine(testing::ValuesIn(Plans()),
                                          testing::ValuesIn(Worlds({1, 2, 3, 5, 8}))),
                         [](const auto& info) {
                           return std::get<0>(info.param) + std::to_string(std::get<1>(info.param));
                         });

// The owner adds in rank order and rounds once; it alone has a rounding error.
TEST(OrderedRoundedSum, IsTheCanonicalSumRounded) {
  constexpr int kRanks = 3;
  constexpr int64_t kFloats = 20'000;
  for (const Wire wire : {Wire::kFp16, Wire::kBf16}) {
    std::vector<float> canonical = RoundedGradient(wire, 0, kFloats);
    for (int rank = 1; rank < kRanks; ++rank) {
      const std::vector<float> more = RoundedGradient(wire, rank, kFloats);
      for (size_t i = 0; i < more.size(); ++i) canonical[i] += more[i];
    }
    for (const int64_t chunk_bytes : {1 << 12, 1 << 20}) {
      const Ends ends = SumOver("ordered", kRanks, wire, kFloats, chunk_bytes);
      for (size_t i = 0; i < canonical.size(); ++i) {
        ASSERT_EQ(ends.sums[0][i], Rounded(wire, canonical[i])) << i;
        int owners = 0;
        for (int rank = 0; rank < kRanks; ++rank) {
          if (ends.errors[rank][i] == 0) continue;
          ++owners;
          ASSERT_EQ(ends.errors[rank][i], canonical[i] - ends.sums[0][i]) << i;
        }
        ASSERT_EQ(owners, canonical[i] == ends.sums[0][i] ? 0 : 1) << i;
      }
    }
  }
}

// If every rank adds for itself, no sum is sent on, and none is rounded.
TEST(OrderedRoundedSum, OfShortVectorsIsNotRounded) {
  const Ends ends = SumOver("ordered", 3, Wire::kBf16, 100, 0);
  for (size_t i = 0; i < 100; ++i) {
    float sum = 0;
    for (int rank = 0; rank < 3; ++rank) {
      const float mine = RoundedGradient(Wire::kBf16, rank, 100)[i];
      sum = rank == 0 ? mine : sum + mine;
      ASSERT_EQ(ends.errors[rank][i], 0);
    }
    ASSERT_EQ(ends.sums[0][i], sum);
  }
}

// Sums of both kinds are in flight in the same lanes; the rounded one sends half the bytes.
TEST(OrderedRoundedSum, GoesBetweenSumsOfFloats) {
  constexpr int kRanks = 4;
  constexpr int64_t kFloats = 16 * kRanks * 1000;
  LocalWorld::Run(kRanks, [](Transport& transport) {
    for (const bool overlap : {false, true}) {
      const auto collective = MakeCollective("ordered", transport,
                                             {.chunk_bytes = 4 * kFloats,
                                              .node_of = {0, 0, 1, 1},
                                              .overlap = overlap,
                                              .rounds = true});
      std::vector<float> first = GradientOf(transport.rank(), kFloats, 1), last = first;
      std::vector<float> rounded = RoundedGradient(Wire::kFp16, transport.rank(), kFloats),
                         errors(rounded.size());
      collective->Start(first);
      collective->StartRounded(rounded, {Wire::kFp16, errors.data()});
      WaitFor(*collective, collective->Start(last));
      while (!collective->Idle()) collective->Progress();
      EXPECT_TRUE(SameBits(first, CanonicalSum(kRanks, kFloats, 1)));
      EXPECT_TRUE(SameBits(first, last));
      const int64_t floats = 2 * (kRanks - 1) * kFloats / kRanks;
      EXPECT_EQ(collective->traffic().bytes_sent, floats * (4 + 2 + 4));
      EXPECT_EQ(collective->traffic().bytes_received, floats * (4 + 2 + 4));
      EXPECT_EQ(collective->traffic().bytes_inside, floats * (4 + 2 + 4) / 3);
    }
  });
}

}  // namespace
}  // namespace dtrain
