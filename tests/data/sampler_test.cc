#include "framework/data/sampler.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "tests/support/counted_random.h"

namespace dtrain {
namespace {

using testing::ElementsAre;

std::vector<int64_t> Order(const Sampler& sampler, uint64_t epoch) {
  std::vector<int64_t> order;
  sampler.Shuffle(epoch, order);
  return order;
}

TEST(Sampler, EveryEpochIsAnotherPermutation) {
  for (const int64_t size : {1, 2, 3, 5, 64, 1000}) {
    const Sampler sampler(7, size, 16);
    std::set<std::vector<int64_t>> orders;
    for (uint64_t epoch = 0; epoch < 3; ++epoch) {
      std::vector<int64_t> order = Order(sampler, epoch);
      orders.insert(order);
      std::sort(order.begin(), order.end());
      std::vector<int64_t> all(size);
      std::iota(all.begin(), all.end(), 0);
      EXPECT_EQ(order, all);
    }
    if (size >= 64) {
      EXPECT_EQ(orders.size(), 3u);
    }
  }
}

TEST(Sampler, OrderDependsOnSeedAndEpochOnly) {
  EXPECT_EQ(Order(Sampler(7, 100, 16), 3), Order(Sampler(7, 100, 32), 3));
  EXPECT_NE(Order(Sampler(7, 100, 16), 3), Order(Sampler(8, 100, 16), 3));
}

TEST(Sampler, ReusedMemoryDoesNotMatter) {
  const Sampler sampler(7, 100, 16);
  std::vector<int64_t> order(100, 42);
  sampler.Shuffle(5, order);
  EXPECT_EQ(order, Order(sampler, 5));
}

TEST(Sampler, PermutationsAreUniform) {
  // In 24 * 500 epochs each of the 24 orders of 4 samples occurs about 500 times.  A chi-squared
  // with 23 degrees of freedom exceeds 49.7 once in a thousand.
  const Sampler sampler(1, 4, 4);
  std::map<std::vector<int64_t>, int> seen;
  for (uint64_t epoch = 0; epoch < 24 * 500; ++epoch) ++seen[Order(sampler, epoch)];
  ASSERT_EQ(seen.size(), 24u);
  double chi_squared = 0;
  for (const auto& [order, count] : seen) chi_squared += (count - 500.0) * (count - 500.0) / 500;
  EXPECT_LT(chi_squared, 49.7);
}

TEST(Sampler, TheTailBatchIsSmallerAndNothingIsDropped) {
  const Sampler sampler(1, 100, 32);
  EXPECT_EQ(sampler.steps_per_epoch(), 4u);
  EXPECT_EQ(sampler.ShareOf(3, 0, 1).global, (Range{96, 100}));
  EXPECT_EQ(sampler.ShareOf(4, 0, 1).global, (Range{0, 32}));
  EXPECT_EQ(sampler.ShareOf(4, 0, 1).epoch, 1u);
  EXPECT_EQ(Sampler(1, 64, 32).steps_per_epoch(), 2u);
}

TEST(Sampler, BatchLargerThanTheSet) {
  const Sampler sampler(1, 10, 32);
  EXPECT_EQ(sampler.steps_per_epoch(), 1u);
  EXPECT_EQ(sampler.ShareOf(0, 0, 1).global, (Range{0, 10}));
  EXPECT_EQ(sampler.MaxShare(4), 3);
}

TEST(Sampler, StepsMapToEpochAndBatchAndBack) {
  const Sampler sampler(1, 100, 32);
  for (uint64_t step = 0; step < 20; ++step) {
    EXPECT_EQ(sampler.StepOf(sampler.EpochOf(step), sampler.BatchOf(step)), step);
  }
  EXPECT_EQ(sampler.EpochOf(11), 2u);
  EXPECT_EQ(sampler.BatchOf(11), 3u);
}

TEST(Sampler, SharesCoverTheBatchInOrder) {
  const Sampler sampler(1, 100, 33);
  for (const int workers : {1, 2, 3, 7, 40}) {
    for (uint64_t step = 0; step < 4; ++step) {
      int64_t end = sampler.ShareOf(step, 0, workers).global.begin;
      for (int w = 0; w < workers; ++w) {
        const StepShare part = sampler.ShareOf(step, w, workers);
        EXPECT_EQ(part.share.begin, end);
        EXPECT_LE(part.share.size(), sampler.MaxShare(workers));
        end = part.share.end;
      }
      EXPECT_EQ(end, sampler.ShareOf(step, 0, workers).global.end);
    }
  }
}

TEST(Sampler, AShareOfTheTailMayBeEmpty) {
  const Sampler sampler(1, 34, 32);
  EXPECT_EQ(sampler.ShareOf(1, 1, 4).share.size(), 1);
  EXPECT_TRUE(sampler.ShareOf(1, 3, 4).share.empty());
}

std::vector<SampleLength> SomeLengths(int64_t size) {
  std::vector<SampleLength> lengths;
  for (int64_t i = 0; i < size; ++i) lengths.push_back({3 + i * i % 29, 0});
  return lengths;
}

TEST(Sampler, BatchesHoldSamplesOfLikeLength) {
  const int64_t size = 2010, batch = 16;
  const std::vector<SampleLength> lengths = SomeLengths(size);
  const Sampler sampler(7, size, batch, lengths), plain(7, size, batch);
  // Returns the relative work when every batch is padded to its longest sample.
  const auto padded = [&](const std::vector<int64_t>& order) {
    int64_t sum = 0;
    for (int64_t begin = 0; begin < size; begin += batch) {
      const int64_t end = std::min(begin + batch, size);
      int64_t longest = 0;
      for (int64_t p = begin; p < end; ++p) longest = std::max(longest, lengths[order[p]].length);
      sum += longest * (end - begin);
    }
    int64_t total = 0;
    for (const SampleLength& sample : lengths) total += sample.length;
    return static_cast<double>(sum) / static_cast<double>(total);
  };
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    EXPECT_LT(padded(Order(sampler, epoch)), 1.05);
    EXPECT_GT(padded(Order(plain, epoch)), 1.5);
  }
}

TEST(Sampler, AnOrderByLengthIsAPermutationOfItsOwnInEveryEpoch) {
  for (const int64_t size : {1, 15, 16, 17, 900, 2010}) {
    const Sampler sampler(7, size, 16, SomeLengths(size));
    std::set<std::vector<int64_t>> orders;
    for (uint64_t epoch = 0; epoch < 3; ++epoch) {
      std::vector<int64_t> order = Order(sampler, epoch);
      EXPECT_EQ(order, Order(Sampler(7, size, 16, SomeLengths(size)), epoch));
      orders.insert(order);
      std::sort(order.begin(), order.end());
      for (int64_t i = 0; i < size; ++i) ASSERT_EQ(order[i], i);
    }
    if (size >= 64) {
      EXPECT_EQ(orders.size(), 3u);
    }
  }
}

// No batch has a fixed position in the epoch: the longest one is sometimes early and sometimes
// late.
TEST(Sampler, BatchesAreShuffled) {
  const int64_t size = 16 * 40;
  const std::vector<SampleLength> lengths = SomeLengths(size);
  const Sampler sampler(7, size, 16, lengths);
  std::set<int64_t> places;
  for (uint64_t epoch = 0; epoch < 30; ++epoch) {
    const std::vector<int64_t> order = Order(sampler, epoch);
    const auto longest = std::max_element(
        order.begin(), order.end(), [&](int64_t a, int64_t b) { return lengths[a] < lengths[b]; });
    places.insert((longest - order.begin()) / 16);
  }
  EXPECT_GT(places.size(), 12u);
}

// Swaps positions from the last to the first; the random word with number i chooses the partner of
// position i.
template <class Swap>
void ShuffleByHand(uint64_t seed, uint64_t epoch, uint64_t stream, uint64_t count, Swap swap) {
  for (uint64_t i = count - 1; i > 0; --i) {
    const uint64_t word = counted_random::Word(seed, 2, epoch, stream, i);
    swap(i, word * (i + 1) >> 32);
  }
}

TEST(Sampler, OrdersFollowFromTheCountedNumbers) {
  for (const int64_t size : {2, 3, 4, 5, 64, 67}) {
    std::vector<int64_t> order(size);
    std::iota(order.begin(), order.end(), 0);
    ShuffleByHand(7, 3, 0, static_cast<uint64_t>(size),
                  [&](uint64_t i, uint64_t j) { std::swap(order[i], order[j]); });
    EXPECT_EQ(Order(Sampler(7, size, 16), 3), order);
  }
}

// Pools of 50 batches are sorted by length, then whole batches are shuffled by their own random
// numbers.
TEST(Sampler, OrdersByLengthFollowFromTheCountedNumbers) {
  const int64_t batch = 2, pool = 50 * batch, size = 2 * pool + 7;
  const std::vector<SampleLength> lengths = SomeLengths(size);
  std::vector<int64_t> order = Order(Sampler(7, size, batch), 3);
  for (int64_t begin = 0; begin < size; begin += pool) {
    std::sort(order.begin() + begin, order.begin() + std::min(begin + pool, size),
              [&](int64_t a, int64_t b) {
                return lengths[a] != lengths[b] ? lengths[a] < lengths[b] : a < b;
              });
  }
  ShuffleByHand(7, 3, 1, static_cast<uint64_t>(size / batch), [&](uint64_t i, uint64_t j) {
    for (int64_t k = 0; k < batch && i != j; ++k) {
      std::swap(order[i * batch + k], order[j * batch + k]);
    }
  });
  EXPECT_EQ(Order(Sampler(7, size, batch, lengths), 3), order);
}

TEST(Sampler, EvaluationBlocksAreFixed) {
  EXPECT_THAT(EvaluationBlocks(10, 4), ElementsAre(Range{0, 4}, Range{4, 8}, Range{8, 10}));
  EXPECT_THAT(EvaluationBlocks(8, 4), ElementsAre(Range{0, 4}, Range{4, 8}));
  EXPECT_TRUE(EvaluationBlocks(0, 4).empty());
}

}  // namespace
}  // namespace dtrain
