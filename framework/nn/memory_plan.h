// PlanMemory: places blocks with known lifetimes into one arena so that blocks alive at the same
// time never overlap.
//
// Time is the index of the kernel call within a step.  Greedy by size: the largest block first,
// each at the lowest offset where it fits between those already placed that live at the same time
// (the heuristic of Pisarchyk and Lee, "Efficient memory management for deep neural net inference",
// 2020, section 5.2).  Offsets are multiples of 64 bytes.
#pragma once

#include <cstddef>
#include <vector>

namespace dtrain {

struct MemoryBlock {
  size_t bytes = 0;
  int first_use = 0;  // inclusive
  int last_use = 0;   // inclusive
  size_t offset = 0;  // answer
};

// Fills every offset and returns the size of the arena.
size_t PlanMemory(std::vector<MemoryBlock>& blocks);

}  // namespace dtrain
