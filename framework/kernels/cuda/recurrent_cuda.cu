#include "framework/kernels/cuda/recurrent.h"

#include <algorithm>
#include <array>

#include "framework/kernels/cuda/rows.h"

namespace dtrain {
namespace {

using Part = RecurrentLayer::Part;

// Applies dropout to the output of layer k; a row is one sample.
void DropOutputs(CudaQueue& queue, const StepValues* values, uint64_t layer_index, int64_t k,
                 double ratio, const DeviceMatrix& from, const DeviceMatrix& to) {
  DropRows(
      queue, values, ratio,
      [=] DT_DEVICE(const StepValues& of, int64_t n) {
        return RecurrentDropout(of.seed, layer_index, k, of.step, of.first_position + n);
      },
      from, to);
}

class RecurrentKernelCuda : public Kernel {
 public:
  RecurrentKernelCuda(const KernelRequest& request, const RecurrentCellCuda& cell)
      : layer_(*static_cast<const RecurrentLayer*>(request.layer)),
        cell_(cell),
        layer_index_(request.layer_index),
        batch_(request.inputs[0][0]),
        steps_(request.inputs[0][1]),
        features_(request.inputs[0][2]),
        hidden_(layer_.hidden()),
        directions_(layer_.directions()),
        gates_(cell.gates * hidden_),
        same_(cell.same_gates * hidden_),
        width_(directions_ * hidden_),
        row_(cell.row * hidden_),
        training_(request.mode == Mode::kTrain),
        queue_(ProductQueueOf(request.device)) {
    PlaceMemory();
  }

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    needs.scratch_bytes = std::max(forward_.bytes(), backward_.bytes());
    needs.saved_bytes = training_ ? saved_.bytes() : 0;
    needs.backward_reads_inputs = true;
    needs.backward_reads_outputs = true;
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    FindLengths(queue_, args.inputs[1].i32(), batch_, steps_, layer_.pad(), Lengths(args));
    for (int64_t k = 0; k < layer_.layers(); ++k) {
      for (int64_t d = 0; d < directions_; ++d) {
        RoundOnce(queue_, Weight(args, k, d, Part::kWeightIn));
        RoundOnce(queue_, Weight(args, k, d, Part::kWeightState));
      }
    }
    RoundOnce(queue_, ReadBy(args, 0, dropped_forward_));
    for (int64_t k = 0; k < layer_.layers(); ++k) {
      const DeviceMatrix x = ReadBy(args, k, dropped_forward_);
      for (int64_t d = 0; d < directions_; ++d) {
        Multiply(queue_, x, Weight(args, k, d, Part::kWeightIn), GatesOf(args, k, d),
                 {.transpose_b = true});
        for (int64_t i = 0; i < steps_; ++i) ForwardStep(args, k, d, i);
      }
    }
  }

  void Backward(const KernelArgs& args) override {
    for (int64_t k = layer_.layers() - 1; k >= 0; --k) {
      const DeviceMatrix x = ReadBy(args, k, dropped_);
      std::array<DeviceMatrix, 2> dgates;  // by direction
      for (int64_t d = 0; d < directions_; ++d) {
        dgates[d] = GateGradientsOf(args, k, d);
        BackwardSteps(args, k, d);
        ParamGradients(args, k, d, x, dgates[d]);
      }
      float* const dx = k == 0 ? args.input_gradients[0].f32() : Scratch(args, dbelow_);
      if (dx == nullptr) continue;
      for (int64_t d = 0; d < directions_; ++d) {
        Multiply(queue_, dgates[d], Weight(args, k, d, Part::kWeightIn), All(dx, InputsOf(k)),
                 {.add = d > 0});
      }
      if (k > 0 && Drops()) Drop(args, k - 1, dx, dx);
    }
  }

 private:
  int64_t InputsOf(int64_t k) const { return layer_.InputsOf(k, features_); }
  int64_t Lane(int64_t k, int64_t d) const { return k * directions_ + d; }
  bool Drops() const { return training_ && layer_.dropout() > 0; }

  void PlaceMemory() {
    const int64_t all = batch_ * steps_, between = layer_.layers() > 1 ? all * width_ : 0;
    from_state_ = forward_.Take(batch_ * gates_);
    dropped_forward_ = forward_.Take(Drops() ? between : 0);
    FloatRoom& kept = training_ ? saved_ : forward_;
    lengths_ = kept.Take(batch_);
    input_copy_ = kept.Take(RoomToRound(queue_, all * features_));
    for (int64_t k = 0; k < layer_.layers(); ++k) {
      state_copies_.push_back(kept.Take(RoomToRound(queue_, all * width_)));
      for (int64_t d = 0; d < directions_; ++d) {
        rows_.push_back(kept.Take(all * row_));
        for (const Part part : {Part::kWeightIn, Part::kWeightState}) {
          rounded_.push_back(kept.Take(RoomToRound(queue_, gates_ * ColumnsOf(k, part))));
        }
      }
      if (k + 1 < layer_.layers()) outputs_.push_back(kept.Take(all * width_));
    }
    if (!training_) return;
    dropped_ = backward_.Take(Drops() ? between : 0);
    dbelow_ = backward_.Take(between);
    before_ = backward_.Take(all * hidden_);
    before_copy_ = backward_.Take(RoomToRound(queue_, all * hidden_));
    dfrom_state_ = backward_.Take(same_ == gates_ ? 0 : all * gates_);
    dfrom_state_copy_ = backward_.Take(same_ == gates_ ? 0 : RoomToRound(queue_, all * gates_));
    for (int64_t d = 0; d < directions_; ++d) {
      gate_copies_.push_back(backward_.Take(RoomToRound(queue_, all * row_)));
    }
    dstate_ = backward_.Take(batch_ * hidden_);
    dcarry_ = backward_.Take(cell_.carries ? batch_ * hidden_ : 0);
  }

  // ---- places of the data; a matrix has a row for each (n, t) unless stated otherwise
  float* Scratch(const KernelArgs& args, int64_t at) const {
    return static_cast<float*>(args.scratch) + at;
  }
  float* Kept(const KernelArgs& args, int64_t at) const {
    return static_cast<float*>(training_ ? args.saved : args.scratch) + at;
  }
  int32_t* Lengths(const KernelArgs& args) const {
    return reinterpret_cast<int32_t*>(Kept(args, lengths_));
  }
  DeviceMatrix All(const float* data, int64_t columns) const {
    return DeviceMatrix::Dense(data, batch_ * steps_, columns);
  }
  DeviceMatrix RowsOf(const KernelArgs& args, int64_t k, int64_t d) const {
    return All(Kept(args, rows_[Lane(k, d)]), row_);
  }
  DeviceMatrix GatesOf(const KernelArgs& args, int64_t k, int64_t d) const {
    return RowsOf(args, k, d).Columns(0, gates_);
  }
  // Returns the gradients by W_i x + b_i, and those by W_h h0 + b_h.  They are valid after BackwardSteps.
  DeviceMatrix GateGradientsOf(const KernelArgs& args, int64_t k, int64_t d) const {
    return ToRoundIn(queue_, GatesOf(args, k, d), Scratch(args, gate_copies_[d]));
  }
  DeviceMatrix StateGatesOf(const KernelArgs& args, int64_t k, int64_t d) const {
    if (same_ == gates_) return GateGradientsOf(args, k, d);
    return ToRoundIn(queue_, All(Scratch(args, dfrom_state_), gates_),
                     Scratch(args, dfrom_state_copy_));
  }
  DeviceMatrix BeforeOf(const KernelArgs& args) const {  // h0 of each step
    return In16BitsAlone(
        ToRoundIn(queue_, All(Scratch(args, before_), hidden_), Scratch(args, before_copy_)));
  }
  DeviceMatrix OutputOf(const KernelArgs& args, int64_t k) const {  // [., D H], not dropped
    const bool last = k == layer_.layers() - 1;
    return ToRoundIn(queue_, All(last ? args.outputs[0].f32() : Kept(args, outputs_[k]), width_),
                     Kept(args, state_copies_[k]));
  }
  DeviceMatrix StatesOf(const KernelArgs& args, int64_t k, int64_t d) const {
    return OutputOf(args, k).Columns(d * hidden_, hidden_);
  }
  DeviceMatrix StepOf(const DeviceMatrix& all, int64_t t) const {  // one row per sample
    return all.Every(steps_, t, batch_);
  }
  const float* Param(const KernelArgs& args, int64_t k, int64_t d, Part part) const {
    return args.params[layer_.ParamOf(k, d, part)].f32();
  }
  int64_t ColumnsOf(int64_t k, Part part) const {
    return part == Part::kWeightIn ? InputsOf(k) : hidden_;
  }
  // In 16 bits each step would else round it again.
  DeviceMatrix Weight(const KernelArgs& args, int64_t k, int64_t d, Part part) const {
    const DeviceMatrix weight =
        DeviceMatrix::Dense(Param(args, k, d, part), gates_, ColumnsOf(k, part));
    const int64_t place = 2 * Lane(k, d) + (part == Part::kWeightState);
    return ToRoundIn(queue_, weight, Kept(args, rounded_[place]));
  }

  void Drop(const KernelArgs& args, int64_t k, const float* from, float* to) const {
    const auto samples = [&](const float* data) {
      return DeviceMatrix::Dense(data, batch_, steps_ * width_);
    };
    DropOutputs(queue_, args.values, layer_index_, k, layer_.dropout(), samples(from), samples(to));
  }

  // Returns the input of layer k.  If there is dropout, it is applied again into the scratch memory at `dropped`.
  DeviceMatrix ReadBy(const KernelArgs& args, int64_t k, int64_t dropped) const {
    if (k == 0) {
      return ToRoundIn(queue_, All(args.inputs[0].f32(), features_), Kept(args, input_copy_));
    }
    const DeviceMatrix below = OutputOf(args, k - 1);
    if (!Drops()) return below;
    Drop(args, k - 1, below.data, Scratch(args, dropped));
    return All(Scratch(args, dropped), width_);
  }

  static int64_t Before(int64_t d, int64_t t) { return d == 0 ? t - 1 : t + 1; }

  // Returns step i of the pass.  The reverse direction reads a sentence's padding first; its states and rows are 0, so
  // the sentence itself starts from zeros.
  CellStep StepAt(const KernelArgs& args, int64_t k, int64_t d, int64_t i) const {
    const int64_t t = d == 0 ? i : steps_ - 1 - i;
    const DeviceMatrix rows = RowsOf(args, k, d), states = StatesOf(args, k, d);
    const DeviceMatrix row = StepOf(rows, t), state = StepOf(states, t);
    CellStep step = {.samples = batch_, .hidden = hidden_, .row = row.data};
    step.row_stride = row.stride;
    step.state = state.data;
    step.state_stride = step.before_stride = state.stride;
    step.state_copy = CopyOf(queue_, state);
    if (i > 0) {
      step.row_before = StepOf(rows, Before(d, t)).data;
      step.state_before = StepOf(states, Before(d, t)).data;
    }
    step.lengths = Lengths(args);
    step.t = t;
    return step;
  }

  void ForwardStep(const KernelArgs& args, int64_t k, int64_t d, int64_t i) const {
    CellStep step = StepAt(args, k, d, i);
    if (i > 0) {
      step.from_state = Scratch(args, from_state_);
      Multiply(queue_, StepOf(StatesOf(args, k, d), Before(d, step.t)),
               Weight(args, k, d, Part::kWeightState),
               DeviceMatrix::Dense(step.from_state, batch_, gates_), {.transpose_b = true});
    }
    step.bias_in = Param(args, k, d, Part::kBiasIn);
    step.bias_state = Param(args, k, d, Part::kBiasState);
    cell_.forward(queue_, step);
  }

  // ---- backward: the gradients by the gates, computed step by step
  void BackwardSteps(const KernelArgs& args, int64_t k, int64_t d) const {
    const DeviceMatrix dstate = DeviceMatrix::Dense(Scratch(args, dstate_), batch_, hidden_);
    ZeroFloats(queue_, dstate.data, batch_ * hidden_);
    if (cell_.carries) ZeroFloats(queue_, Scratch(args, dcarry_), batch_ * hidden_);
    for (int64_t i = steps_ - 1; i >= 0; --i) {
      const CellStep step = StepAt(args, k, d, i);
      cell_.backward(queue_, step, GradientsAt(args, k, d, step.t));
      if (i == 0) return;
      Multiply(queue_, StepOf(StateGatesOf(args, k, d), step.t),
               Weight(args, k, d, Part::kWeightState), dstate, {.add = true});
    }
  }

  CellGradients GradientsAt(const KernelArgs& args, int64_t k, int64_t d, int64_t t) const {
    const bool last = k == layer_.layers() - 1;
    const DeviceMatrix dys =
        All(last ? args.output_gradients[0].f32() : Scratch(args, dbelow_), width_);
    const DeviceMatrix dy = StepOf(dys.Columns(d * hidden_, hidden_), t);
    const DeviceMatrix from_state = StepOf(StateGatesOf(args, k, d), t);
    const DeviceMatrix before = StepOf(BeforeOf(args), t);
    return {.dy = dy.data,
            .dy_stride = dy.stride,
            .dstate = Scratch(args, dstate_),
            .dcarry = cell_.carries ? Scratch(args, dcarry_) : nullptr,
            .from_state = same_ == gates_ ? nullptr : from_state.data,
            .from_state_stride = from_state.stride,
            .before = before.data,
            .before_stride = before.stride,
            .row_copy = CopyOf(queue_, StepOf(GateGradientsOf(args, k, d), t)),
            .from_state_copy = CopyOf(queue_, same_ == gates_ ? DeviceMatrix() : from_state),
            .before_copy = CopyOf(queue_, before)};
  }

  // Computes the parameter gradients of one direction of layer k, whose input was x, from those by its gates.
  void ParamGradients(const KernelArgs& args, int64_t k, int64_t d, const DeviceMatrix& x,
                      const DeviceMatrix& dgates) const {
    const auto of = [&](Part part) {
      return args.param_gradients[layer_.ParamOf(k, d, part)].f32();
    };
    const auto weight = [&](Part part, const DeviceMatrix& by, const DeviceMatrix& read) {
      Multiply(queue_, by, read, DeviceMatrix::Dense(of(part), gates_, read.columns),
               {.transpose_a = true, .add = args.accumulate});
    };
    const DeviceMatrix dstates = StateGatesOf(args, k, d);
    weight(Part::kWeightIn, dgates, x);
    weight(Part::kWeightState, dstates, BeforeOf(args));
    SumOverRows(queue_, dgates, args.accumulate, of(Part::kBiasIn), of(Part::kBiasState), same_);
    SumOverRows(queue_, dstates.Columns(same_, gates_ - same_), args.accumulate,
                of(Part::kBiasState) + same_);
  }

  const RecurrentLayer& layer_;
  const RecurrentCellCuda cell_;
  const uint64_t layer_index_;
  const int64_t batch_, steps_, features_, hidden_, directions_;
  const int64_t gates_;  // G H
  const int64_t same_;   // kSameGates H
  const int64_t width_;  // D H
  const int64_t row_;    // floats of a row
  const bool training_;
  CudaQueue& queue_;

  // These are offsets in floats. rows_ has one for each layer and direction, rows_[Lane(k, d)]; in training, rows_,
  // outputs_, rounded_ and lengths_ are offsets into the saved memory.
  FloatRoom forward_, backward_, saved_;
  std::vector<int64_t> rows_, outputs_;
  std::vector<int64_t> rounded_;  // two for each layer and direction: the weights in 16 bits
  // Copies in 16 bits: the input, the states of each layer, and for a backward pass h0 and the gradients by the gates.
  int64_t input_copy_ = 0, before_copy_ = 0, dfrom_state_copy_ = 0;
  std::vector<int64_t> state_copies_, gate_copies_;  // by layer; by direction
  int64_t lengths_ = 0;
  int64_t from_state_ = 0, dropped_forward_ = 0;
  int64_t dropped_ = 0, dbelow_ = 0, before_ = 0, dfrom_state_ = 0, dstate_ = 0, dcarry_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> MakeRecurrentCuda(const KernelRequest& request,
                                          const RecurrentCellCuda& cell) {
  return std::make_unique<RecurrentKernelCuda>(request, cell);
}

}  // namespace dtrain
