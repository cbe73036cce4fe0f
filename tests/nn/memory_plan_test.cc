#include "framework/nn/program.h"

#include <gtest/gtest.h>

#include "framework/core/random.h"

namespace dtrain {
namespace {

bool Overlap(const MemoryBlock& a, const MemoryBlock& b) {
  const bool in_time = a.first_use <= b.last_use && b.first_use <= a.last_use;
  return in_time && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

TEST(PlanMemory, BlocksOfDifferentTimesShareMemory) {
  std::vector<MemoryBlock> blocks = {{1024, 0, 1}, {1024, 2, 3}, {1024, 4, 5}};
  EXPECT_EQ(PlanMemory(blocks), 1024u);
}

TEST(PlanMemory, BlocksOfTheSameTimeDoNot) {
  std::vector<MemoryBlock> blocks = {{1000, 0, 2}, {500, 1, 3}, {200, 2, 2}};
  EXPECT_EQ(PlanMemory(blocks), 1024u + 512u + 256u);
}

TEST(PlanMemory, ThousandsOfRandomPlansNeverOverlap) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const Random random(seed, Purpose::kSelfTest);
    std::vector<MemoryBlock> blocks(1 + random.Below(0, 30));
    size_t sum = 0;
    for (size_t i = 0; i < blocks.size(); ++i) {
      blocks[i].bytes = random.Below(3 * i + 1, 5000);
      blocks[i].first_use = static_cast<int>(random.Below(3 * i + 2, 20));
      blocks[i].last_use = blocks[i].first_use + static_cast<int>(random.Below(3 * i + 3, 10));
      sum += (blocks[i].bytes + 63) / 64 * 64;
    }
    const size_t arena = PlanMemory(blocks);
    EXPECT_LE(arena, sum) << "seed " << seed;
    for (size_t i = 0; i < blocks.size(); ++i) {
      EXPECT_EQ(blocks[i].offset % 64, 0u);
      EXPECT_LE(blocks[i].offset + blocks[i].bytes, arena);
      for (size_t j = 0; j < i; ++j) {
        EXPECT_FALSE(blocks[i].bytes > 0 && blocks[j].bytes > 0 && Overlap(blocks[i], blocks[j]))
            << "seed " << seed << ", blocks " << i << " and " << j;
      }
    }
  }
}

}  // namespace
}  // namespace dtrain
