#include "framework/nn/program.h"

#include <algorithm>

namespace dtrain {
namespace {

constexpr size_t kAlignment = 64;

size_t RoundUp(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

bool LiveTogether(const MemoryBlock& a, const MemoryBlock& b) {
  return a.first_use <= b.last_use && b.first_use <= a.last_use;
}

// Returns the lowest offset at which `block` fits between `neighbours` (sorted by offset).
size_t LowestFit(const MemoryBlock& block, const std::vector<const MemoryBlock*>& neighbours) {
  size_t offset = 0;
  for (const MemoryBlock* other : neighbours) {
    if (offset + block.bytes <= other->offset) break;
    offset = std::max(offset, other->offset + RoundUp(other->bytes));
  }
  return offset;
}

}  // namespace

size_t PlanMemory(std::vector<MemoryBlock>& blocks) {
  std::vector<MemoryBlock*> by_size;
  for (MemoryBlock& block : blocks) by_size.push_back(&block);
  std::stable_sort(by_size.begin(), by_size.end(),
                   [](const MemoryBlock* a, const MemoryBlock* b) { return a->bytes > b->bytes; });
  std::vector<const MemoryBlock*> placed;
  size_t arena_bytes = 0;
  for (MemoryBlock* block : by_size) {
    std::vector<const MemoryBlock*> neighbours;
    for (const MemoryBlock* other : placed) {
      if (LiveTogether(*block, *other)) neighbours.push_back(other);
    }
    std::sort(neighbours.begin(), neighbours.end(),
              [](const MemoryBlock* a, const MemoryBlock* b) { return a->offset < b->offset; });
    block->offset = LowestFit(*block, neighbours);
    placed.push_back(block);
    arena_bytes = std::max(arena_bytes, block->offset + RoundUp(block->bytes));
  }
  return arena_bytes;
}

}  // namespace dtrain
