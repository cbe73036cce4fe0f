// Program is a graph compiled for one set of input shapes, one mode and one device: kernels and formats are chosen,
// reorders inserted, memory is placed.  Only Net uses it.
//
// Compile works in three steps: fusion.cc fuses layers into calls, program.cc chooses kernels and formats of slots,
// program_memory.cc computes the lifetimes of the slots and places them (memory_plan.cc).
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

// One run of a layer, on graph values.
struct Call {
  int layer = 0;  // index into Graph::layers()
  bool fused_relu = false;
  bool fused_sum = false;   // the last input is that of a sum
  int pooling = -1;         // the max pooling behind it: the kernel computes both layers
  std::vector<int> inputs;  // graph values
  int output = 0;
};

// Describes memory that is needed for part of a step.  Time is the index of the kernel call within the step.
struct MemoryBlock {
  size_t bytes = 0;
  int first_use = 0;  // inclusive
  int last_use = 0;   // inclusive
  size_t offset = 0;  // result
};

// Holds a value in one form.  Slots with the same `block` share memory; external slots (block -1) are the caller's
// batch fields.
struct Slot {
  Tensor tensor;      // address set by Bind or, for external ones, per step
  int external = -1;  // index of the model input
  int block = -1;
  int producer = -1;         // op index
  std::vector<int> readers;  // op indices
  int view_of = -1;          // shares memory and gradient with this slot, with another shape
  bool needs_gradient = false;
  int gradient_block = -1;
};

// Describes one kernel call.
struct Op {
  std::string name;  // the layer's; for an inserted kernel "<value>:reorder", "loss:sum"
  std::string implementation;
  const GraphLayer* layer = nullptr;  // null for an inserted kernel
  std::unique_ptr<Kernel> kernel;
  KernelNeeds needs;
  std::vector<int> inputs;  // slots
  int output = -1;
  bool has_backward = false;
  int saved_block = -1;
  // Holds, per parameter, the block of its other form (KernelNeeds::params) and of that form's gradient; -1: it is
  // read and written in the arenas.  Empty: all are.
  std::vector<int> param_blocks, param_gradient_blocks;
  std::unique_ptr<Kernel>
      own_params;  // for the gradients of this call alone; null if all are plain
  // Holds, per input, the block of its gradient, -1 if no kernel needs it.  If another reader has already written the
  // gradient, this kernel writes to one of `addend_blocks`, and `add` adds it.
  std::vector<int> gradient_blocks;
  std::vector<int> addend_blocks;
  bool adds_input_gradient = false;  // this kernel adds to the first itself
  std::unique_ptr<Kernel> add;       // adds the addends; null if there are none

  // The kernel's arguments; Bind sets the addresses of slots, each step those of the batch and the arenas.
  std::vector<Tensor> input_tensors, output_tensors, output_gradients, input_gradients;
  // Destinations of the addends, parallel to input_gradients; null data: none.
  std::vector<Tensor> sums;
  std::vector<Tensor> params, param_gradients, state;
  void* saved = nullptr;
};

struct Program {
  int64_t id = 0;  // no other program of a net had it
  Mode mode = Mode::kTrain;
  int64_t samples = 0;
  std::vector<Shape> inputs;  // the shapes it is compiled for, batch axis included
  std::vector<Slot> slots;
  std::vector<Op> ops;  // forward order
  std::vector<MemoryBlock> blocks;
  size_t arena_bytes = 0;
  size_t scratch_bytes = 0;
  // Slots of one double each, valid until another program runs.
  int loss_sum = -1;             // sum of the losses; -1: the model has no loss
  std::vector<int> metric_sums;  // sums of the metrics' counts, in the graph's order
  std::unique_ptr<Kernel>
      params;  // makes the parameters that have other forms; null if there are none

  // Sets every tensor's address in `arena`.
  void Bind(std::byte* arena);

 private:
  void BindForms(Op& op, std::byte* arena) const;
};

// Compiles a graph.  The preference rule (kernel.h) chooses the kernels that `kernels` does not name.  Throws ConfigError
// if a named implementation does not exist or cannot run the layer.
Program Compile(const Graph& graph, Mode mode, std::span<const Shape> inputs, const Device& device,
                const KernelChoices& kernels);

// FuseAll is the first step of Compile: only here do calls differ from the layers of the graph.  Each pass takes the
// list of calls and returns a shorter one that computes the same values:
//   ReluIntoProducer       A -> relu            =>  A with fused_relu, where a kernel of A takes it
//   ReluBehindCommuting    A -> relu -> maxpool =>  A -> maxpool with fused_relu: max(0, .) and max
//                          commute, gradients included, and the pooled map is smaller
//   PoolingIntoProducer    A -> maxpool        =>  A with maxpool, where a kernel of A computes both: A's own output
//                          is never in memory
//   SumIntoProducer        A + b               =>  A with fused_sum, where a kernel of A takes it; a ReLU behind the
//                          sum goes with it
using Accepts = std::function<bool(const Call&)>;  // true if a kernel runs the call as it is fused
std::vector<Call> FuseAll(const Graph& graph, const Accepts& accepts);
std::vector<Call> CallsOf(const Graph& graph);  // the calls before any pass

// Runs the third step of Compile.
void PlaceMemory(Program& program);

// Places blocks in one arena so that those alive at the same time never overlap: fills every
// offset, a multiple of 64 bytes, and returns the size of the arena.  Greedy by size: the largest
// block first, each at the lowest offset where it fits between those already placed that live at
// the same time (the heuristic of Pisarchyk and Lee, "Efficient memory management for deep neural
// net inference", 2020, section 5.2).
size_t PlanMemory(std::vector<MemoryBlock>& blocks);

}  // namespace dtrain
