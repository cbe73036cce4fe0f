// Computes lifetimes and places of a program's memory.  Time runs over the forward calls 0..n-1, then the backward
// calls in reverse order n..2n-1; call i's backward happens at 2n-1-i.
#include <algorithm>

#include <fmt/format.h>

#include "framework/core/check.h"
#include "framework/core/error.h"
#include "framework/nn/program.h"

namespace dtrain {
namespace {

constexpr int kNever = -1;

class Placer {
 public:
  explicit Placer(Program& program)
      : program_(program), ops_(static_cast<int>(program.ops.size())) {}

  void Run() {
    for (int i = 0; i < ops_; ++i) Forward(i);
    if (program_.loss_sum >= 0) Touch(Root(program_.loss_sum).block, 2 * ops_);
    for (const int slot : program_.metric_sums) Touch(Root(slot).block, 2 * ops_);
    if (program_.mode == Mode::kTrain) {
      for (int i = ops_ - 1; i >= 0; --i) Backward(i);
    }
    for (const Op& op : program_.ops) {
      program_.scratch_bytes = std::max(program_.scratch_bytes, op.needs.scratch_bytes);
    }
    program_.arena_bytes = PlanMemory(program_.blocks);
  }

 private:
  int BackwardTime(int op) const { return 2 * ops_ - 1 - op; }

  Slot& Root(int slot) {
    while (program_.slots[slot].view_of >= 0) slot = program_.slots[slot].view_of;
    return program_.slots[slot];
  }

  size_t BytesOf(const Slot& slot) const {
    return static_cast<size_t>(StoredCount(slot.tensor.shape, slot.tensor.format)) *
           SizeOf(slot.tensor.dtype);
  }

  int NewBlock(size_t bytes) {
    program_.blocks.push_back({bytes, kNever, kNever, 0});
    return static_cast<int>(program_.blocks.size()) - 1;
  }

  void Touch(int block, int time) {
    if (block < 0) return;
    MemoryBlock& b = program_.blocks[block];
    b.first_use = b.first_use == kNever ? time : std::min(b.first_use, time);
    b.last_use = std::max(b.last_use, time);
  }

  void Forward(int i) {
    Op& op = program_.ops[i];
    for (const int slot : op.inputs) Touch(Root(slot).block, i);
    Slot& output = Root(op.output);
    output.block = RunsInPlace(op) ? Root(op.inputs[0]).block : NewBlock(BytesOf(output));
    Touch(output.block, i);
    PlaceParams(op, i);
    // Every forward pass in training writes `saved`; only Backward reads it.
    if (op.needs.saved_bytes > 0) {
      op.saved_block = NewBlock(op.needs.saved_bytes);
      Touch(op.saved_block, i);
    }
    if (!op.has_backward) return;
    Touch(op.saved_block, BackwardTime(i));
    if (op.needs.backward_reads_inputs) {
      for (const int slot : op.inputs) Touch(Root(slot).block, BackwardTime(i));
    }
    if (op.needs.backward_reads_outputs) Touch(output.block, BackwardTime(i));
  }

  // They are made before the first call.  Gradients are added to the arena's behind the last one.
  void PlaceParams(Op& op, int i) {
    for (size_t p = 0; p < op.needs.params.size(); ++p) {
      const Form form = op.needs.params[p];
      if (form.plain()) continue;
      op.param_blocks.resize(op.needs.params.size(), -1);
      op.param_gradient_blocks.resize(op.needs.params.size(), -1);
      const size_t bytes =
          static_cast<size_t>(op.layer->params[p].shape.count()) * SizeOf(form.dtype);
      op.param_blocks[p] = NewBlock(bytes);
      Touch(op.param_blocks[p], 0);
      Touch(op.param_blocks[p], i);
      if (!op.has_backward) continue;
      Touch(op.param_blocks[p], BackwardTime(i));
      op.param_gradient_blocks[p] = NewBlock(bytes);
      Touch(op.param_gradient_blocks[p], BackwardTime(i));
      Touch(op.param_gradient_blocks[p], 2 * ops_);
    }
  }

  // The output may replace the input if no other call reads the input.
  bool RunsInPlace(const Op& op) {
    if (!op.needs.forward_in_place) return false;
    const Slot& input = Root(op.inputs[0]);
    if (input.block < 0 || BytesOf(input) != BytesOf(program_.slots[op.output])) return false;
    if (ReadersOf(input) != 1) return false;
    if (program_.mode != Mode::kTrain) return true;
    return !op.needs.backward_reads_inputs &&
           !program_.ops[input.producer].needs.backward_reads_outputs;
  }

  size_t ReadersOf(const Slot& root) {
    size_t readers = 0;
    for (size_t s = 0; s < program_.slots.size(); ++s) {
      if (&Root(static_cast<int>(s)) == &root) readers += program_.slots[s].readers.size();
    }
    return readers;
  }

  void Backward(int i) {
    Op& op = program_.ops[i];
    op.gradient_blocks.assign(op.inputs.size(), -1);
    op.addend_blocks.assign(op.inputs.size(), -1);
    if (!op.has_backward) return;
    const bool is_loss = op.layer != nullptr && op.layer->layer->role() == LayerRole::kLoss;
    const int upstream = Root(op.output).gradient_block;
    if (!is_loss && upstream < 0) {
      throw ConfigError(
          fmt::format("layer '{}' has a gradient, but its output reaches no loss", op.name),
          "add a loss layer behind it or remove the layer");
    }
    Touch(upstream, BackwardTime(i));
    for (size_t k = 0; k < op.inputs.size(); ++k) PlaceGradient(op, i, k, is_loss ? -1 : upstream);
  }

  void PlaceGradient(Op& op, int i, size_t k, int upstream) {
    Slot& input = Root(op.inputs[k]);
    const bool differentiable =
        op.layer == nullptr || op.layer->layer->InputHasGradient(static_cast<int>(k));
    if (!input.needs_gradient || !differentiable) return;
    if (input.gradient_block >= 0 && k == 0 && op.needs.backward_adds) {
      op.adds_input_gradient = true;
    } else if (input.gradient_block >= 0) {
      op.addend_blocks[k] = NewBlock(BytesOf(input));
      Touch(op.addend_blocks[k], BackwardTime(i));
    } else {
      const bool in_place = k == 0 && upstream >= 0 && op.needs.backward_in_place &&
                            program_.blocks[upstream].bytes == BytesOf(input);
      input.gradient_block = in_place ? upstream : NewBlock(BytesOf(input));
    }
    op.gradient_blocks[k] = input.gradient_block;
    Touch(input.gradient_block, BackwardTime(i));
    if (op.needs.forward_writes_gradients) {
      DT_CHECK(!op.needs.backward_adds) << op.name;
      Touch(op.addend_blocks[k] >= 0 ? op.addend_blocks[k] : input.gradient_block, i);
    }
  }

  Program& program_;
  const int ops_;
};

Tensor At(Tensor tensor, const Program& program, std::byte* arena, int block) {
  tensor.data = block < 0 ? nullptr : arena + program.blocks[block].offset;
  return tensor;
}

int RootOf(const Program& program, int slot) {
  while (program.slots[slot].view_of >= 0) slot = program.slots[slot].view_of;
  return slot;
}

}  // namespace

void PlaceMemory(Program& program) { Placer(program).Run(); }

void Program::BindForms(Op& op, std::byte* arena) const {
  for (size_t p = 0; p < op.param_blocks.size(); ++p) {
    if (op.param_blocks[p] < 0) continue;
    Tensor& param = op.params[p];
    param.dtype = op.needs.params[p].dtype;
    param.format = op.needs.params[p].format;
    param = At(param, *this, arena, op.param_blocks[p]);
    op.param_gradients[p] = At(param, *this, arena, op.param_gradient_blocks[p]);
  }
}

void Program::Bind(std::byte* arena) {
  for (size_t s = 0; s < slots.size(); ++s) {
    slots[s].tensor =
        At(slots[s].tensor, *this, arena, slots[RootOf(*this, static_cast<int>(s))].block);
  }
  for (Op& op : ops) {
    op.input_tensors.clear();
    op.input_gradients.clear();
    op.sums.clear();
    op.saved = op.saved_block < 0 ? nullptr : arena + blocks[op.saved_block].offset;
    BindForms(op, arena);
    op.output_tensors = {slots[op.output].tensor};
    op.output_gradients = {
        At(slots[op.output].tensor, *this, arena, slots[RootOf(*this, op.output)].gradient_block)};
    for (size_t k = 0; k < op.inputs.size(); ++k) {
      const Tensor& input = slots[op.inputs[k]].tensor;
      op.input_tensors.push_back(input);
      if (!op.has_backward) continue;
      const bool added = op.addend_blocks[k] >= 0;
      op.input_gradients.push_back(
          At(input, *this, arena, added ? op.addend_blocks[k] : op.gradient_blocks[k]));
      op.sums.push_back(At(input, *this, arena, added ? op.gradient_blocks[k] : -1));
    }
  }
}

}  // namespace dtrain
