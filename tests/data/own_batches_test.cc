// Tests which worker sees which sample: shares of global batches, and the shards of an asynchronous
// run.
#include <gmock/gmock.h>

#include <algorithm>
#include <string>

#include "framework/data/batches.h"
#include "framework/data/images/image_set.h"
#include "tests/support/shards_by_hand.h"

namespace dtrain {
namespace {

struct Sizes {
  int64_t samples, batch;
  int workers;
};

// Even and uneven shards and shares, last batches that are short, and more workers than samples.
const Sizes kSizes[] = {{64, 16, 4},  {50, 16, 1}, {50, 16, 2}, {50, 16, 3}, {100, 33, 3},
                        {101, 33, 7}, {7, 16, 3},  {97, 5, 8},  {5, 4, 8}};

std::string TextOf(const Sizes& s) {
  return std::to_string(s.samples) + " samples in batches of " + std::to_string(s.batch) + ", " +
         std::to_string(s.workers) + " workers";
}

TEST(OwnShares, AreTheShardsInTurn) {
  for (const Sizes& s : kSizes) {
    SCOPED_TRACE(TextOf(s));
    const Sampler sampler(1, s.samples, s.batch);
    for (int w = 0; w < s.workers; ++w) {
      ShardsByHand expected(s.samples, s.batch, s.workers, w);
      for (uint64_t i = 0; i < 200; ++i) {
        const StepShare own = sampler.OwnShareOf(i, w, s.workers);
        const auto [pass, range] = expected.Next();
        ASSERT_EQ(own.epoch, pass) << "mini-batch " << i << " of worker " << w;
        ASSERT_EQ(own.share, range) << "mini-batch " << i << " of worker " << w;
        ASSERT_EQ(own.global, range) << "its loss is averaged over itself";
        ASSERT_EQ(own.step, i);
        ASSERT_LE(range.size(), sampler.MaxShare(s.workers));
      }
    }
  }
}

// Distant mini-batches are computed directly, without a loop over all passes.
TEST(OwnShares, RepeatAfterEveryShardWasRead) {
  const Sampler sampler(1, 50, 16);
  for (const int w : {0, 1, 2}) {
    // The shards have 17, 17 and 16 samples, in mini-batches of 6 or 5.
    const uint64_t batches = w == 0 ? 3 + 3 + 3 : 4 + 4 + 4;
    for (uint64_t i = 0; i < 2 * batches; ++i) {
      const StepShare near = sampler.OwnShareOf(i, w, 3);
      const StepShare far = sampler.OwnShareOf(i + batches * 1'000'000'000'000, w, 3);
      EXPECT_EQ(far.share, near.share) << "mini-batch " << i << " of worker " << w;
      EXPECT_EQ(far.epoch, near.epoch + 3 * 1'000'000'000'000);
    }
  }
}

// Returns training samples whose label is their index.
ImageSet Numbered(int64_t size) {
  LabelledImages train, test;
  for (int64_t i = 0; i < size; ++i) {
    train.images.push_back(static_cast<uint8_t>(i));
    train.labels.push_back(static_cast<uint8_t>(i));
  }
  test.images = {0};
  test.labels = {0};
  return ImageSet({Shape{1, 1, 1}, size, 0, 1}, train, test);
}

// Returns times[pass][sample]: how often the workers saw it, each starting at its mini-batch
// `first`.
std::vector<std::vector<int>> TimesSeen(const Sizes& s, uint64_t first, uint64_t passes) {
  const ImageSet set = Numbered(s.samples);
  const Sampler sampler(3, s.samples, s.batch);
  std::vector<std::vector<int>> times(passes, std::vector<int>(s.samples));
  for (int w = 0; w < s.workers; ++w) {
    BatchFiller fill = OwnBatches(set, sampler, w, s.workers, first);
    Batch batch(set.fields(), sampler.MaxShare(s.workers));
    for (uint64_t k = 0; fill(k, batch) && batch.epoch < passes; ++k) {
      EXPECT_EQ(batch.step, first + k);
      EXPECT_EQ(batch.first_position, 0);
      EXPECT_GE(batch.global_samples, batch.samples);
      EXPECT_GT(batch.samples, 0);
      for (int64_t i = 0; i < batch.samples; ++i) ++times[batch.epoch][batch.fields[1].i32()[i]];
    }
  }
  return times;
}

TEST(OwnBatches, CoverEverySampleOnceAPass) {
  for (const Sizes& s : kSizes) {
    SCOPED_TRACE(TextOf(s));
    const auto passes = static_cast<uint64_t>(2 * s.workers + 1);
    const std::vector<int> once(s.samples, 1);
    for (const std::vector<int>& times : TimesSeen(s, 0, passes)) EXPECT_EQ(times, once);
  }
}

// If all workers have equally many mini-batches per pass, a pass that begins at one is whole.
TEST(OwnBatches, BeginInTheMiddle) {
  const Sizes even = {64, 16, 4};  // four mini-batches per pass
  const std::vector<int> none(64, 0), once(64, 1);
  const auto times = TimesSeen(even, 2 * 4, 4);
  EXPECT_THAT(times, testing::ElementsAre(none, none, once, once));
  const std::vector<int> half = TimesSeen(even, 4 + 2, 2)[1];
  EXPECT_EQ(std::count(half.begin(), half.end(), 1), 32);
  EXPECT_EQ(std::count(half.begin(), half.end(), 0), 32);
}

// 25 samples in mini-batches of 8: the fourth has one, which counts an eighth of a mini-batch.
TEST(OwnBatches, ARemainderCountsByItsSamples) {
  const ImageSet set = Numbered(50);
  const Sampler sampler(3, 50, 16);
  BatchFiller fill = OwnBatches(set, sampler, 0, 2, 0);
  Batch batch(set.fields(), 8);
  for (uint64_t k = 0; k < 8; ++k) {
    ASSERT_TRUE(fill(k, batch));
    EXPECT_EQ(batch.samples, k % 4 == 3 ? 1 : 8);
    EXPECT_EQ(batch.terms, batch.samples);
    EXPECT_EQ(batch.global_samples, 8);
    EXPECT_EQ(batch.global_terms, 8);
  }
  // A single worker has the batches of a synchronous run.
  BatchFiller alone = OwnBatches(set, sampler, 0, 1, 0);
  Batch whole(set.fields(), 16);
  for (uint64_t k = 0; k < 4; ++k) {
    ASSERT_TRUE(alone(k, whole));
    EXPECT_EQ(whole.global_samples, k == 3 ? 2 : 16);
  }
}

TEST(OwnBatches, AWorkerLeavesItsShardAfterAPass) {
  const ImageSet set = Numbered(50);
  const Sampler sampler(3, 50, 16);
  std::vector<int64_t> order;
  BatchFiller fill = OwnBatches(set, sampler, 0, 2, 0);
  Batch batch(set.fields(), 8);
  struct Expected {
    uint64_t epoch;
    int64_t begin, count;
  };
  // Worker 0 of 2 has the first 25 positions of an epoch, then the last 25 of the next one.
  const Expected expected[] = {{0, 0, 8},  {0, 8, 8},  {0, 16, 8}, {0, 24, 1}, {1, 25, 8},
                               {1, 33, 8}, {1, 41, 8}, {1, 49, 1}, {2, 0, 8}};
  for (uint64_t k = 0; k < std::size(expected); ++k) {
    const auto [epoch, begin, count] = expected[k];
    ASSERT_TRUE(fill(k, batch));
    sampler.Shuffle(epoch, order);
    ASSERT_EQ(batch.samples, count);
    EXPECT_EQ(batch.epoch, epoch);
    for (int64_t i = 0; i < count; ++i) EXPECT_EQ(batch.fields[1].i32()[i], order[begin + i]);
  }
}

// All workers' shares of a synchronous epoch, equal or not, cover all samples; those of a step are
// that step's batch, in order.
TEST(Shares, CoverEverySampleOnceAnEpoch) {
  for (const Sizes& s : kSizes) {
    SCOPED_TRACE(TextOf(s));
    const ImageSet set = Numbered(s.samples);
    const Sampler sampler(3, s.samples, s.batch);
    const int64_t steps = (s.samples + s.batch - 1) / s.batch;
    std::vector<std::vector<int>> times(3, std::vector<int>(s.samples));
    std::vector<int64_t> samples(3 * steps);
    for (int w = 0; w < s.workers; ++w) {
      BatchFiller fill = TrainingBatches(set, sampler, w, s.workers, 0, 3 * steps);
      Batch batch(set.fields(), sampler.MaxShare(s.workers));
      uint64_t k = 0;
      for (; fill(k, batch); ++k) {
        EXPECT_EQ(batch.epoch, k / steps);
        samples[k] += batch.samples;
        for (int64_t i = 0; i < batch.samples; ++i) ++times[batch.epoch][batch.fields[1].i32()[i]];
      }
      EXPECT_EQ(k, 3u * steps);
    }
    for (const std::vector<int>& epoch : times) EXPECT_EQ(epoch, std::vector<int>(s.samples, 1));
    for (int64_t k = 0; k < 3 * steps; ++k) {
      const bool last = k % steps == steps - 1;
      EXPECT_EQ(samples[k], last ? s.samples - (steps - 1) * s.batch : s.batch) << "step " << k;
    }
  }
}

}  // namespace
}  // namespace dtrain
