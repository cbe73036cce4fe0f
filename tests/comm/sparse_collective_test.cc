#include "framework/comm/sparse_collective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/core/error.h"
#include "tests/comm/collective_conformance.h"
#include "tests/comm/sparse_cases.h"
#include "tests/comm/sparse_reference.h"
#include "tests/comm/sparse_scenarios.h"
#include "tests/comm/sparse_world.h"
#include "tests/support/counting_transport.h"
#include "tests/support/seeds.h"
#include "tests/support/worlds.h"

namespace dtrain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<int> kWorlds = {1, 2, 3, 5, 8, 16};

// Rounding: at most one addition for each term and branch of the tree.
double RelativeError(const SparseCase& drawn) {
  return drawn.whole ? 0 : 1.2e-7 * static_cast<double>(drawn.mine.size());
}

void ExpectSameEverywhere(const std::vector<Summed>& sums) {
  for (const Summed& sum : sums) ASSERT_EQ(sum.parts, sums[0].parts);
}

// Checks that positions ascend, without repetition, within the vector.
void ExpectEntries(const Selected& selected, int64_t n) {
  for (size_t i = 0; i < selected.positions.size(); ++i) {
    ASSERT_LT(i == 0 ? -1 : selected.positions[i - 1], selected.positions[i]);
    ASSERT_LT(selected.positions[i], n);
  }
}

class SparseCollectiveCases : public ::testing::TestWithParam<int> {
 protected:
  int ranks() const { return GetParam(); }
  // One world runs many cases: a case must not be affected by the state of the one before.
  static constexpr int kCases = 400;
};
INSTANTIATE_TEST_SUITE_P(Ranks, SparseCollectiveCases, ::testing::ValuesIn(kWorlds));

TEST_P(SparseCollectiveCases, GatherBringsEverybodysEntriesInRankOrder) {
  SparseWorld world("gather", ranks());
  for (const int64_t seed : SeedRange(kCases)) {
    const SparseCase drawn = DrawCase(seed, ranks());
    const auto sums = world.Sum(seed % 3, drawn.n, drawn.k, drawn.mine);
    ASSERT_EQ(sums, GatherReference(drawn.mine)) << "seed " << seed;
  }
}

TEST_P(SparseCollectiveCases, GTopKIsWhatTheTreeMakesAndLosesNothing) {
  SparseWorld world("gtopk", ranks());
  for (const int64_t seed : SeedRange(kCases)) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const SparseCase drawn = DrawCase(seed, ranks());
    const auto sums = world.Sum(seed % 3, drawn.n, drawn.k, drawn.mine);
    ASSERT_EQ(sums, GTopKReference(drawn.k, drawn.mine));
    ExpectConserved(drawn.n, drawn.mine, sums, RelativeError(drawn));
    for (const Summed& sum : sums) ExpectEntries(sum.returned, drawn.n);
    ExpectEntries(sums[0].parts[0], drawn.n);
    if (HasFatalFailure()) return;
  }
}

TEST_P(SparseCollectiveCases, OkTopKKeepsTheSumsAboveTheThresholdAndReturnsTheRest) {
  for (const int64_t seed : SeedRange(8)) {
    Draws draws(seed);
    const std::array<int64_t, 2> sizes = {draws.Between(1, 12), draws.Between(100, 2000)};
    SparseWorld world("oktopk", ranks(), seed);
    std::array<OkTopKReference, 2> references;
    // Runs past the second adjustment of the regions; k changes once, between two exact thresholds.
    for (int call = 0; call < 70; ++call) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", call " + std::to_string(call));
      const int unit = call % 2 == 0 ? 0 : 1;
      const int64_t k = std::max<int64_t>(1, sizes[unit] / (call < 40 ? 20 : 50));
      const SparseCase drawn = DrawSelections(draws, ranks(), sizes[unit], k, draws.Coin());
      const auto sums = world.Sum(unit, drawn.n, k, drawn.mine);
      const auto wanted = references[unit].Sum(k, drawn.mine);
      ExpectSameEverywhere(sums);
      ASSERT_EQ(sums[0].Joined(), wanted[0].parts[0]);
      for (Rank rank = 0; rank < ranks(); ++rank) {
        ASSERT_EQ(sums[rank].returned, wanted[rank].returned) << "rank " << rank;
      }
      ExpectConserved(drawn.n, drawn.mine, sums, RelativeError(drawn));
      if (HasFatalFailure()) return;
    }
  }
}

// Finds the state's list `boundaries`.
class Finder : public StateVisitor {
 public:
  void Int(std::string_view, int64_t&) override {}
  void Floats(std::string_view, std::span<float>) override {}
  void Ints(std::string_view name, std::vector<int64_t>& values) override {
    if (name == "boundaries") boundaries = values;
  }
  std::vector<int64_t> boundaries;
};

std::vector<int64_t> BoundariesOf(SparseCollective& collective) {
  Finder finder;
  collective.Visit(finder);
  return finder.boundaries;
}

TEST_P(SparseCollectiveCases, OkTopKCutsItsRegionsByTheMeanOfTheCutsEvery64Calls) {
  constexpr int64_t kFloats = 5000;
  SparseWorld world("oktopk", ranks());
  Draws draws(9);
  std::vector<int64_t> wanted;
  for (int call = 0; call < 130; ++call) {
    const SparseCase drawn = DrawSelections(draws, ranks(), kFloats, 40, true);
    if (call % 64 == 0) {
      wanted.assign(ranks() + 1, 0);
      int64_t voters = 0;
      for (const Selected& mine : drawn.mine) {
        const auto count = static_cast<int64_t>(mine.positions.size());
        voters += count > 0 ? 1 : 0;
        for (int64_t i = 1; count > 0 && i < ranks(); ++i) {
          wanted[i] += mine.positions[i * count / ranks()];
        }
      }
      for (int64_t i = 1; voters > 0 && i < ranks(); ++i) wanted[i] /= voters;
      for (int64_t i = 1; voters == 0 && i < ranks(); ++i) wanted[i] = i * kFloats / ranks();
      wanted.back() = kFloats;
    }
    world.Sum(0, kFloats, 40, drawn.mine);
    ASSERT_EQ(BoundariesOf(world.at(ranks() - 1)), wanted) << "call " << call;
  }
  EXPECT_TRUE(std::is_sorted(wanted.begin(), wanted.end()));
}

// The state is complete: a new world resumes from it with the same bits.
TEST_P(SparseCollectiveCases, OkTopKGoesOnFromItsStateToTheBit) {
  constexpr int64_t kFloats = 900;
  Draws draws(5);
  std::vector<SparseCase> steps;
  for (int call = 0; call < 80; ++call) {
    steps.push_back(DrawSelections(draws, ranks(), kFloats, 30, false));
  }
  SparseWorld whole("oktopk", ranks(), 1), first("oktopk", ranks(), 2),
      second("oktopk", ranks(), 3);
  for (int call = 0; call < 80; ++call) {
    if (call == 41) {
      for (Rank rank = 0; rank < ranks(); ++rank) {
        const std::string state = SaveState(first.at(rank));
        EXPECT_EQ(state, SaveState(first.at(0)));
        LoadState(second.at(rank), state);
        EXPECT_EQ(SaveState(second.at(rank)), state);
      }
    }
    const auto wanted = whole.Sum(7, kFloats, 30, steps[call].mine);
    SparseWorld& world = call < 41 ? first : second;
    ASSERT_EQ(world.Sum(7, kFloats, 30, steps[call].mine), wanted) << "call " << call;
  }
}

TEST(SparseCollective, StateOfOtherWorkersIsRefused) {
  SparseWorld three("oktopk", 3), two("oktopk", 2);
  three.Sum(0, 100, 5, std::vector<Selected>(3, {{1, 2}, {3.0f, 4.0f}}));
  const std::string state = SaveState(three.at(0));
  try {
    LoadState(two.at(0), state);
    FAIL() << "no error";
  } catch (const CheckpointError& error) {
    EXPECT_THAT(error.what(), HasSubstr("not those of 2 workers"));
  }
}

TEST(SparseCollective, SeveralUnitsHaveRegionsAndThresholdsOfTheirOwn) {
  SparseWorld world("oktopk", 2);
  const std::vector<Selected> large(2, {{10, 50, 90}, {100.0f, -200.0f, 300.0f}});
  const std::vector<Selected> small(2, {{10, 50, 90}, {1.0f, -2.0f, 3.0f}});
  EXPECT_THAT(world.Sum(0, 100, 2, large)[0].Joined().positions, ElementsAre(50, 90));
  EXPECT_THAT(world.Sum(1, 100, 2, small)[0].Joined().positions, ElementsAre(50, 90));
  EXPECT_THAT(world.Sum(0, 100, 2, small)[0].Joined().positions, ElementsAre());
}

// All entries are in one region, whose cuts were made for other positions: without balancing, one rank would bring all
// of them into the gather.
TEST(SparseCollective, OwnersWithFarMoreThanOthersShareThemOut) {
  constexpr int kRanks = 8;
  constexpr int64_t kFloats = 8000;
  SparseWorld world("oktopk", kRanks);
  Draws draws(3);
  std::vector<Selected> spread(kRanks), crowded(kRanks);
  for (Selected& selected : spread) {
    selected.positions = DrawPositions(draws, 0, kFloats, 100);
    selected.values.assign(100, 1.0f);
  }
  for (Selected& selected : crowded) {
    selected.positions = DrawPositions(draws, 10, 400, 100);
    selected.values.assign(100, 1.0f);
  }
  world.Sum(0, kFloats, 100, spread);
  const auto sums = world.Sum(0, kFloats, 100, crowded);
  const size_t total = sums[0].Joined().positions.size();
  ASSERT_GT(total, 300u);
  for (const Selected& part : sums[0].parts) {
    EXPECT_NEAR(static_cast<double>(part.positions.size()), static_cast<double>(total) / kRanks, 1);
  }
}

// oktopk.md 5.4: the mean, over a period, of the received words of the rank that receives most.
class SparseVolume : public ::testing::TestWithParam<int> {
 protected:
  static constexpr int64_t kFloats = 40'000;
  static constexpr int64_t kEntries = 400;
  static constexpr int kSteps = 64;

  struct Words {
    double all = 0;
    double periodic = 0;
  };
  // Returns the words a step that the busiest rank receives.
  Words MostWords(const std::string& name) {
    const int ranks = GetParam();
    SparseWorld world(name, ranks);
    Draws draws(11);
    for (int step = 0; step < kSteps; ++step) {
      std::vector<Selected> mine(static_cast<size_t>(ranks));
      for (Selected& selected : mine) {
        selected.positions = DrawUnevenPositions(draws, kFloats, kEntries);
        for (int64_t i = 0; i < kEntries; ++i) selected.values.push_back(DrawValue(draws, false));
      }
      world.Sum(0, kFloats, kEntries, mine);
    }
    Words most;
    for (Rank rank = 0; rank < ranks; ++rank) {
      const auto a_step = [](int64_t bytes) { return static_cast<double>(bytes) / 4 / kSteps; };
      const double periodic = a_step(world.at(rank).periodic_bytes_received());
      most.periodic = std::max(most.periodic, periodic);
      most.all = std::max(most.all, a_step(world.at(rank).traffic().bytes_received) - periodic);
    }
    // Recorded in the XML of --gtest_output, for comparison.
    RecordProperty(name + "_words", static_cast<int>(most.all));
    RecordProperty(name + "_periodic_words", static_cast<int>(most.periodic));
    return most;
  }
};
INSTANTIATE_TEST_SUITE_P(Ranks, SparseVolume, ::testing::Values(2, 3, 4, 8, 16));

TEST_P(SparseVolume, OfGatherIsEverybodysEntriesOnce) {
  const double others = GetParam() - 1;
  EXPECT_DOUBLE_EQ(MostWords("gather").all, others * (2 * kEntries + 1));
}

TEST_P(SparseVolume, OfGTopKGrowsWithTheLogarithm) {
  const double rounds = std::ceil(std::log2(GetParam()));
  const double words = MostWords("gtopk").all;
  EXPECT_LE(words, rounds * (2 * kEntries + 1));  // up or down; 4 k log2 P counts both directions
  EXPECT_GE(words, 2 * kEntries + 1);
}

TEST_P(SparseVolume, OfOkTopKStaysBelowSixKWhateverTheWorkers) {
  const double bound = 6.0 * kEntries * (GetParam() - 1) / GetParam() * 1.25;
  const Words words = MostWords("oktopk");
  EXPECT_LE(words.all, bound);
  EXPECT_GE(words.all, bound / 3);
  // Two exact thresholds, each of 4 all-reduces of 256 counts of two words.
  const double rounds = std::ceil(std::log2(GetParam()));
  EXPECT_GT(words.periodic, 0);
  EXPECT_LE(words.periodic, 2.0 * 4 * 512 * (rounds + 1) / kSteps);
}

TEST(SparseCollective, SumsAreCarriedOutInTheOrderOfStartAndKeptUntilReleased) {
  for (const std::string& name : SparseCollectiveNames()) {
    SparseWorld world(name, 3);
    std::vector<SparseCase> cases;
    for (int i = 0; i < 6; ++i) {
      Draws draws(i);
      cases.push_back(DrawSelections(draws, 3, 500, 20, true));
    }
    for (int i = 0; i < 3; ++i) world.Start(i, 500, 20, cases[i].mine);
    EXPECT_FALSE(world.at(0).Idle());
    EXPECT_FALSE(world.at(0).Done(0));
    world.Finish();
    std::vector<Summed> first;
    for (int i = 0; i < 3; ++i) first.push_back(Summed::Of(world.at(1).Of(i)));
    world.at(1).Release(1);  // its memory may be reused by the next sums
    for (int i = 3; i < 6; ++i) world.Start(i, 500, 20, cases[i].mine);
    world.Finish();
    EXPECT_TRUE(world.at(1).Done(1)) << "a released ticket";
    EXPECT_EQ(Summed::Of(world.at(1).Of(0)), first[0]) << name;
    EXPECT_EQ(Summed::Of(world.at(1).Of(2)), first[2]) << name;
    EXPECT_EQ(world.at(1).Of(5).parts.size(), name == "gtopk" ? 1u : 3u);
  }
}

class WithdrawalCounter : public ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;
  void Withdraw() override {
    ++withdrawals;
    ForwardingTransport::Withdraw();
  }
  int withdrawals = 0;
};

TEST(SparseCollective, OnlyAnUnfinishedSumIsWithdrawnAndOnlyOnce) {
  Selected selected;
  selected.Add(3, 1.0f);
  for (const std::string& name : SparseCollectiveNames()) {
    for (const bool starts : {false, true}) {
      LocalWorld world(2);
      const std::unique_ptr<Transport> inner = world.Connect(0);
      WithdrawalCounter transport(*inner);
      auto collective = MakeSparseCollective(name, transport, {});
      if (starts) collective->Start(0, 10, 1, selected.entries());
      collective->Progress();
      collective.reset();
      EXPECT_EQ(transport.withdrawals, starts ? 1 : 0) << name;
    }
  }
}

// A sum of 24 MB is computed in parts, and the network is polled in between.
TEST(SparseCollective, ALargeSumIsMadeALittleAtATime) {
  constexpr int64_t kEntries = 1'000'000;
  std::vector<Selected> mine(1);
  for (int32_t i = 0; i < kEntries; ++i) mine[0].Add(2 * i, static_cast<float>(i % 1000));
  for (const auto& [name, least] : {std::pair{"gtopk", 20}, std::pair{"oktopk", 20}}) {
    SparseWorld world(name, 1);
    world.Start(0, 2 * kEntries, kEntries / 2, mine);
    int calls = 0;
    while (!world.at(0).Done(0)) {
      EXPECT_TRUE(world.at(0).Progress());
      ++calls;
    }
    EXPECT_GE(calls, least) << name;
    EXPECT_FALSE(world.at(0).Progress());
  }
}

TEST(SparseCollective, BytesInsideANodeAreCounted) {
  for (const std::string& name : SparseCollectiveNames()) {
    const std::vector<Selected> mine(4, {{1, 2}, {3.0f, 4.0f}});
    SparseWorld together(name, 4, 1, {.node_of = {0, 0, 0, 0}});
    SparseWorld apart(name, 4, 1, {.node_of = {0, 1, 2, 3}});
    together.Sum(0, 100, 2, mine);
    apart.Sum(0, 100, 2, mine);
    const Collective::Traffic traffic = together.at(1).traffic();
    EXPECT_GT(traffic.bytes_sent, 0);
    EXPECT_EQ(traffic.bytes_inside, traffic.bytes_sent);
    EXPECT_EQ(apart.at(1).traffic().bytes_inside, 0);
    EXPECT_EQ(apart.at(1).traffic().bytes_sent, traffic.bytes_sent);
  }
}

class SparseCollectiveThreads : public ::testing::TestWithParam<std::tuple<std::string, int>> {};
INSTANTIATE_TEST_SUITE_P(Conformance, SparseCollectiveThreads,
                         ::testing::Combine(::testing::Values("gather", "gtopk", "oktopk"),
                                            ::testing::ValuesIn(Worlds({1, 2, 3, 5, 8}))),
                         [](const auto& info) {
                           return std::get<0>(info.param) + std::to_string(std::get<1>(info.param));
                         });

TEST_P(SparseCollectiveThreads, Conforms) {
  const auto& [name, ranks] = GetParam();
  LocalWorld::Run(ranks,
                  [&name = name](Transport& transport) { RunSparseConformance(transport, name); });
}

TEST(SparseCollective, ALostRankReachesWhoeverSums) {
  for (const std::string& name : SparseCollectiveNames()) {
    const auto body = [&name](Transport& transport) {
      if (transport.rank() == 2) throw DivergedError("loss is NaN");
      const auto collective = MakeSparseCollective(name, transport);
      const Selected mine = {{1, 2}, {3.0f, 4.0f}};
      EXPECT_THROW(WaitFor(*collective, collective->Start(0, 10, 2, mine.entries())),
                   PeerLostError);
    };
    EXPECT_THROW(LocalWorld::Run(3, body), DivergedError);
  }
}

TEST(SparseCollective, ThatEndsInFlightTakesItsMemoryBack) {
  for (const std::string& name : SparseCollectiveNames()) {
    const auto body = [&name](Transport& transport) {
      const Selected mine = {{1, 2}, {3.0f, 4.0f}};
      const auto collective = MakeSparseCollective(name, transport);
      collective->Start(0, 10, 2, mine.entries());
      for (int i = 0; i < transport.rank(); ++i) collective->Progress();
      throw DivergedError("loss is NaN");
    };
    for (int i = 0; i < 10; ++i) EXPECT_THROW(LocalWorld::Run(3, body), DivergedError);
  }
}

TEST(SparseCollective, NamesAreListedAndAnUnknownOneIsExplained) {
  EXPECT_THAT(SparseCollectiveNames(), ElementsAre("gather", "gtopk", "oktopk"));
  LocalWorld world(1);
  const auto transport = world.Connect(0);
  try {
    MakeSparseCollective("gtopc", *transport);
    FAIL() << "no error";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "unknown sparse collective 'gtopc'");
    EXPECT_THAT(error.hint(), HasSubstr("did you mean 'gtopk'?"));
  }
}

}  // namespace
}  // namespace dtrain
