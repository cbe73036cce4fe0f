#include "framework/data/batches.h"

#include <gmock/gmock.h>

#include <atomic>
#include <set>
#include <stdexcept>
#include <thread>

#include "framework/core/error.h"
#include "tests/data/temp_folder.h"

namespace dtrain {
namespace {

// Only defines the batches' fields; the fillers of these tests write the batches.
class Unread : public Dataset {
 public:
  int64_t size(Split) const override { return 0; }
  std::vector<FieldSpec> fields() const override { return {{"data", DType::kF32, Shape{2}}}; }
  int64_t classes() const override { return 0; }
  void Fill(Split, std::span<const int64_t>, uint64_t, Batch&) const override {}
  std::string ManifestHash() const override { return {}; }
};
const Unread kSet;

// Fills batch k with k.
BatchFiller Counting(uint64_t batches, std::atomic<uint64_t>* filled = nullptr) {
  return [=](uint64_t k, Batch& batch) {
    if (k == batches) return false;
    batch.Resize(static_cast<int64_t>(k % 3));
    batch.step = k;
    for (int64_t i = 0; i < 2 * batch.samples; ++i)
      batch.fields[0].f32()[i] = static_cast<float>(k);
    if (filled != nullptr) ++*filled;
    return true;
  };
}

TEST(Prefetch, ExactOrderAndEnd) {
  Prefetcher batches(kSet, 4, Counting(500), 3);
  for (uint64_t k = 0; k < 500; ++k) {
    const Batch* batch = batches.Next();
    ASSERT_NE(batch, nullptr);
    ASSERT_EQ(batch->step, k);
    ASSERT_EQ(batch->fields[0].shape[0], static_cast<int64_t>(k % 3));
    for (int64_t i = 0; i < 2 * batch->samples; ++i) ASSERT_EQ(batch->fields[0].f32()[i], k);
  }
  EXPECT_EQ(batches.Next(), nullptr);
  EXPECT_EQ(batches.Next(), nullptr);
}

TEST(Prefetch, NeverRunsFurtherAheadThanTheRing) {
  std::atomic<uint64_t> filled{0};
  Prefetcher batches(kSet, 4, Counting(100, &filled), 3);
  for (uint64_t k = 0; k < 100; ++k) {
    batches.Next();
    EXPECT_LE(filled.load(), k + 3);
  }
}

// The whole ring except the batch in use is filled ahead.
TEST(Prefetch, RunsAheadAsFarAsTheRing) {
  std::atomic<uint64_t> filled{0};
  Prefetcher batches(kSet, 4, Counting(100, &filled), 3);
  const auto wait_for = [&](uint64_t count) {
    for (int i = 0; i < 10'000 && filled < count; ++i) ::usleep(1000);
    return filled.load();
  };
  EXPECT_EQ(wait_for(3), 3U);
  batches.Next();
  EXPECT_EQ(wait_for(3), 3U);
  batches.Next();
  EXPECT_EQ(wait_for(4), 4U);
}

// A point in a device's work that is reached when the test says so.
class Gate : public ReadyEvent::Mark {
 public:
  bool Done() const override { return open; }
  void Wait() const override {
    while (!open) ::usleep(100);
  }
  std::atomic<bool> open{false};
};

TEST(Prefetch, ABatchIsFilledAgainWhenTheDeviceHasReadIt) {
  std::atomic<uint64_t> filled{0};
  Prefetcher batches(kSet, 4, Counting(100, &filled), 3);
  const auto gate = std::make_shared<Gate>();
  const Batch* const first = batches.Next();
  batches.Next(ReadyEvent(gate));
  batches.Next();
  ::usleep(20'000);
  EXPECT_EQ(filled, 3U);
  EXPECT_EQ(first->step, 0U);
  gate->open = true;
  for (int i = 0; i < 10'000 && filled < 5; ++i) ::usleep(1000);
  EXPECT_EQ(filled, 5U);
}

TEST(Prefetch, TheRingIsAllocatedOnce) {
  Prefetcher batches(kSet, 4, Counting(100), 3);
  std::set<const void*> memory;
  while (const Batch* batch = batches.Next()) memory.insert(batch->fields[0].data);
  EXPECT_EQ(memory.size(), 3u);
}

// One batch is used while the next one is filled.
TEST(Prefetch, TheRingHasTwoAtLeast) {
  Prefetcher batches(kSet, 4, Counting(10), 1);
  std::set<const void*> memory;
  while (const Batch* batch = batches.Next()) memory.insert(batch->fields[0].data);
  EXPECT_EQ(memory.size(), 2u);
}

TEST(Prefetch, ErrorsComeInTheirPlaceAndStay) {
  Prefetcher batches(
      kSet, 4,
      [](uint64_t k, Batch& batch) {
        if (k == 2) throw DataError("record 2 is damaged");
        batch.step = k;
        return true;
      },
      2);
  EXPECT_EQ(batches.Next()->step, 0u);
  EXPECT_EQ(batches.Next()->step, 1u);
  EXPECT_THAT(MessageOf<DataError>([&] { batches.Next(); }), testing::HasSubstr("record 2"));
  EXPECT_THROW(batches.Next(), DataError);
}

// Whatever the thread is doing when the prefetcher is destroyed, the batches taken were in order,
// and none is filled after the destructor.
TEST(Prefetch, StopsCleanlyAtAnyTime) {
  for (uint64_t taken = 0; taken < 6; ++taken) {
    std::atomic<uint64_t> filled{0};
    std::atomic<bool> gone{false}, filled_behind{false};
    const BatchFiller count = Counting(1'000'000, &filled);
    {
      Prefetcher batches(
          kSet, 4,
          [&](uint64_t k, Batch& batch) {
            if (gone) filled_behind = true;
            return count(k, batch);
          },
          2);
      for (uint64_t k = 0; k < taken; ++k) {
        const Batch* batch = batches.Next();
        ASSERT_NE(batch, nullptr);
        EXPECT_EQ(batch->step, k);
      }
    }
    gone = true;
    const uint64_t at_end = filled;
    EXPECT_GE(at_end, taken);
    EXPECT_LE(at_end, taken + 2) << "as many as the ring holds";
    std::this_thread::yield();
    EXPECT_EQ(filled, at_end);
    EXPECT_FALSE(filled_behind);
  }
}

TEST(Prefetch, NoBatches) { EXPECT_EQ(Prefetcher(kSet, 4, Counting(0)).Next(), nullptr); }

}  // namespace
}  // namespace dtrain
