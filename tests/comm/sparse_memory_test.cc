// Tests that repeated sums allocate no memory.  Replaces operator new to count allocations.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/comm/sparse_cases.h"
#include "tests/comm/sparse_world.h"

namespace {

constexpr size_t kLarge = 4096;
std::atomic<int64_t> large_allocations = 0;

void* Allocate(size_t bytes) {
  if (bytes >= kLarge) ++large_allocations;
  return std::malloc(bytes > 0 ? bytes : 1);
}
void* AllocateOrThrow(size_t bytes) {
  if (void* const memory = Allocate(bytes)) return memory;
  throw std::bad_alloc();
}

}  // namespace

// All forms but the aligned ones, so that memory from any of them goes back to the same malloc.
void* operator new(size_t bytes) { return AllocateOrThrow(bytes); }
void* operator new[](size_t bytes) { return AllocateOrThrow(bytes); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return Allocate(bytes); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return Allocate(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

namespace dtrain {
namespace {

TEST(SparseMemory, NothingLargeIsAllocatedInTheSteadyState) {
  for (const std::string& name : SparseCollectiveNames()) {
    SparseWorld world(name, 5);
    std::vector<std::vector<Selected>> steps;
    Draws draws(3);
    for (int step = 0; step < 4; ++step) {
      steps.push_back(DrawSelections(draws, 5, 200'000, 4000, false).mine);
    }
    const auto round = [&](int64_t first_ticket) {
      for (int i = 0; i < 4; ++i) world.Start(i, 200'000, 4000, steps[i]);
      world.Finish();
      for (Rank rank = 0; rank < 5; ++rank) {
        for (int i = 0; i < 4; ++i) world.at(rank).Release(first_ticket + i);
      }
    };
    // Buffers move from owner to owner; after some rounds all of them are large enough.
    int64_t ticket = 0;
    for (; ticket < 4 * 40; ticket += 4) round(ticket);
    const int64_t before = large_allocations;
    for (; ticket < 4 * 80; ticket += 4) round(ticket);
    EXPECT_EQ(large_allocations - before, 0) << name;
    EXPECT_GT(before, 0);
  }
}

}  // namespace
}  // namespace dtrain
