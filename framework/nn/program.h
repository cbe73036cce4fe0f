// Program: a graph compiled for one set of input shapes, mode and device - kernels chosen, formats
// settled, reorders inserted, memory placed.  Internal to Net.
//
// Compile works in three steps, a file each: fusion.cc (which calls), program.cc (which kernels and
// formats, on slots), program_memory.cc (lifetimes and places of the slots, by memory_plan.cc).
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/nn/graph.h"
#include "framework/nn/kernel.h"

namespace dtrain {

// A layer to be run, on graph values.
struct Call {
  int layer = 0;  // index into Graph::layers()
  bool fused_relu = false;
  std::vector<int> inputs;  // graph values
  int output = 0;
};

// Memory that is needed for a while.  Time is the index of the kernel call within a step.
struct MemoryBlock {
  size_t bytes = 0;
  int first_use = 0;  // inclusive
  int last_use = 0;   // inclusive
  size_t offset = 0;  // answer
};

// A value in one format.  Slots with the same `block` share memory; external ones (block -1) are
// the caller's batch fields.
struct Slot {
  Tensor tensor;      // address set by Bind or, for external ones, per step
  int external = -1;  // index of the model input
  int block = -1;
  int producer = -1;         // op index
  std::vector<int> readers;  // op indices
  int view_of = -1;          // same memory and same gradient as this slot, another shape
  bool needs_gradient = false;
  int gradient_block = -1;
};

// One kernel call.
struct Op {
  std::string name;  // the layer's, or of an inserted kernel "<value>:reorder", "loss:sum"
  std::string implementation;
  const GraphLayer* layer = nullptr;  // null for an inserted kernel
  std::unique_ptr<Kernel> kernel;
  KernelNeeds needs;
  std::vector<int> inputs;  // slots
  int output = -1;
  bool has_backward = false;
  int saved_block = -1;
  // Per input: block of its gradient, -1 when nobody wants it; and whether another reader has
  // already written the gradient, so that this one's goes to `addend_block` and is added.
  std::vector<int> gradient_blocks;
  std::vector<int> addend_blocks;
  std::unique_ptr<Kernel> add;  // does that; null where nothing is added

  // What the kernel is given; addresses by Bind and per step.
  std::vector<Tensor> input_tensors, output_tensors, output_gradients, input_gradients;
  std::vector<Tensor> sums;  // where addends go, parallel to input_gradients; null data: nowhere
  std::vector<Tensor> params, param_gradients, state;
  void* saved = nullptr;
};

struct Program {
  Mode mode = Mode::kTrain;
  int64_t samples = 0;
  std::vector<Shape> inputs;  // what it is compiled for, batch axis included
  std::vector<Slot> slots;
  std::vector<Op> ops;  // forward order
  std::vector<MemoryBlock> blocks;
  size_t arena_bytes = 0;
  size_t scratch_bytes = 0;
  // Slots of one double each, valid until another program runs.
  int loss_sum = -1;             // over the samples; -1: the model has no loss
  std::vector<int> metric_sums;  // of a metric's counts, in the graph's order

  // Gives every tensor its address inside `arena`.
  void Bind(std::byte* arena);
};

// `kernels` maps layer names to the implementation to take; layers it does not name are chosen by
// rule.  Throws ConfigError when a named implementation does not exist or cannot run the layer.
Program Compile(const Graph& graph, Mode mode, std::span<const Shape> inputs, const Device& device,
                const std::map<std::string, std::string>& kernels);

// The first step, for Compile: the one place where calls stop being the layers of the graph.  Each
// pass takes the list of calls and returns a shorter one that computes the same values:
//   ReluIntoProducer       A -> relu            =>  A with fused_relu, where a kernel of A takes it
//   ReluBehindCommuting    A -> relu -> maxpool =>  A -> maxpool with fused_relu: max(0, .) and max
//                          commute, gradients included, and the pooled map is smaller
using AcceptsRelu = std::function<bool(const Call&)>;  // some kernel of it can take fused_relu
std::vector<Call> FuseAll(const Graph& graph, const AcceptsRelu& accepts_relu);
std::vector<Call> CallsOf(const Graph& graph);  // before any pass

// The third step, for Compile.
void PlaceMemory(Program& program);

// Places blocks in one arena so that those alive at the same time never overlap: fills every
// offset, a multiple of 64 bytes, and returns the size of the arena.  Greedy by size: the largest
// block first, each at the lowest offset where it fits between those already placed that live at
// the same time (the heuristic of Pisarchyk and Lee, "Efficient memory management for deep neural
// net inference", 2020, section 5.2).
size_t PlanMemory(std::vector<MemoryBlock>& blocks);

}  // namespace dtrain
