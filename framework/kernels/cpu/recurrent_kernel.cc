#include "framework/kernels/cpu/recurrent_kernel.h"

#include <algorithm>

#include "framework/device/cpu/parallel.h"
#include "framework/kernels/cpu/loops.h"
#include "framework/kernels/cpu/packed_gemm.h"
#include "framework/nn/kernel.h"
#include "framework/nn/tokens.h"

namespace dtrain {
namespace {

using Part = RecurrentLayer::Part;

class RecurrentKernel : public Kernel {
 public:
  RecurrentKernel(const KernelRequest& request, std::unique_ptr<RecurrentCell> cell)
      : layer_(*static_cast<const RecurrentLayer*>(request.layer)),
        cell_(std::move(cell)),
        layer_index_(request.layer_index),
        batch_(request.inputs[0][0]),
        steps_(request.inputs[0][1]),
        features_(request.inputs[0][2]),
        hidden_(layer_.hidden()),
        directions_(layer_.directions()),
        gates_(layer_.gates() * hidden_),
        width_(directions_ * hidden_),
        row_(cell_->row_width(hidden_)),
        parts_(cell_->StateParts(hidden_)),
        training_(request.mode == Mode::kTrain),
        device_(request.device) {
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
    float* const scratch = static_cast<float*>(args.scratch);
    RunTeam(device_.threads, [&](int thread, int team) { PackForward(args, thread, team); });
    std::fill_n(scratch + zeros_, row_, 0.0f);
    RunTeam(device_.threads, [&](int thread, int team) {
      const Range rows = SplitEvenly({0, batch_}, team, thread);
      if (rows.size() == 0) return;
      for (int64_t k = 0; k < layer_.layers(); ++k) ForwardLayer(args, k, rows);
    });
  }

  void Backward(const KernelArgs& args) override {
    float* const scratch = static_cast<float*>(args.scratch);
    RunTeam(device_.threads, [&](int thread, int team) { PackBackward(args, thread, team); });
    std::fill_n(scratch + backward_zeros_, row_, 0.0f);
    for (int64_t k = layer_.layers() - 1; k >= 0; --k) {
      if (k > 0) DropLayer(args, OutputOf(args, k - 1).data, k - 1, scratch + dropped_);
      for (int64_t d = 0; d < directions_; ++d) BackwardDirection(args, k, d);
      float* const dx = k == 0 ? args.input_gradients[0].f32() : scratch + dbelow_;
      if (dx == nullptr) continue;
      InputGradients(args, k, dx);
      if (k > 0) DropLayer(args, dx, k - 1, dx);
    }
  }

 private:
  int64_t InputsOf(int64_t k) const { return layer_.InputsOf(k, features_); }
  int64_t Lane(int64_t k, int64_t d) const { return k * directions_ + d; }
  bool Drops() const { return training_ && layer_.dropout() > 0; }

  void PlaceMemory() {
    const int64_t all = batch_ * steps_, lanes = layer_.layers() * directions_;
    for (int64_t k = 0; k < layer_.layers(); ++k) {
      for (int64_t d = 0; d < directions_; ++d) {
        packed_in_.push_back(forward_.Take(PackedFloats(gates_, InputsOf(k))));
        packed_state_.push_back(forward_.Take(PackedFloats(gates_, hidden_)));
      }
    }
    zeros_ = forward_.Take(row_);
    from_state_ = forward_.Take(batch_ * gates_);
    dropped_forward_ = forward_.Take(layer_.layers() > 1 ? all * width_ : 0);
    FloatRoom& kept = training_ ? saved_ : forward_;
    for (int64_t i = 0; i < lanes; ++i) rows_.push_back(kept.Take(all * row_));
    for (int64_t k = 0; k + 1 < layer_.layers(); ++k) outputs_.push_back(kept.Take(all * width_));
    if (!training_) return;
    for (int64_t i = 0; i < lanes; ++i) {
      for (const auto& part : parts_) {
        packed_back_.push_back(backward_.Take(PackedFloats(hidden_, part.gates * hidden_)));
      }
    }
    backward_zeros_ = backward_.Take(row_);
    dropped_ = backward_.Take(layer_.layers() > 1 ? all * width_ : 0);
    dbelow_ = backward_.Take(layer_.layers() > 1 ? all * width_ : 0);
    before_ = backward_.Take(all * hidden_);
    dstate_ = backward_.Take(batch_ * hidden_);
    dcarry_ = backward_.Take(batch_ * hidden_);
  }

  // ---- places of the data; a matrix has a row for each (n, t) unless stated otherwise
  Matrix All(float* data, int64_t columns) const {
    return Matrix::Dense(data, batch_ * steps_, columns);
  }
  Matrix RowsOf(const KernelArgs& args, int64_t k, int64_t d) const {
    float* const kept = static_cast<float*>(training_ ? args.saved : args.scratch);
    return All(kept + rows_[Lane(k, d)], row_);
  }
  Matrix GatesOf(const KernelArgs& args, int64_t k, int64_t d) const {
    return RowsOf(args, k, d).Columns(0, gates_);
  }
  Matrix OutputOf(const KernelArgs& args, int64_t k) const {  // [., D H], not dropped
    if (k == layer_.layers() - 1) return All(args.outputs[0].f32(), width_);
    float* const kept = static_cast<float*>(training_ ? args.saved : args.scratch);
    return All(kept + outputs_[k], width_);
  }
  Matrix StatesOf(const KernelArgs& args, int64_t k, int64_t d) const {
    return OutputOf(args, k).Columns(d * hidden_, hidden_);
  }
  Matrix BelowOf(const KernelArgs& args, int64_t k) const {  // what layer k reads, not dropped
    return k == 0 ? All(args.inputs[0].f32(), features_) : OutputOf(args, k - 1);
  }
  // Returns the matrix of step t, with a row for each of `samples`.
  Matrix StepOf(const Matrix& all, int64_t t, Range samples) const {
    return all.Every(steps_, samples.begin * steps_ + t, samples.size());
  }
  const float* ParamOf(const KernelArgs& args, int64_t k, int64_t d, Part part) const {
    return args.params[layer_.ParamOf(k, d, part)].f32();
  }
  int64_t LengthOf(const KernelArgs& args, int64_t n) const {
    return SentenceLength(args.inputs[1].i32() + n * steps_, steps_, layer_.pad());
  }

  // ---- forward
  void PackForward(const KernelArgs& args, int thread, int team) const {
    float* const scratch = static_cast<float*>(args.scratch);
    const Range panels = SplitEvenly({0, PanelsOf(gates_)}, team, thread);
    for (int64_t k = 0; k < layer_.layers(); ++k) {
      for (int64_t d = 0; d < directions_; ++d) {
        const int64_t in = InputsOf(k);
        DTRAIN_ISA_SELECT(device_.isa, PackPanels)
        (PackSource::Whole(ConstMatrix::Dense(ParamOf(args, k, d, Part::kWeightIn), gates_, in)),
         scratch + packed_in_[Lane(k, d)], panels.begin, panels.end);
        DTRAIN_ISA_SELECT(device_.isa, PackPanels)
        (PackSource::Whole(
             ConstMatrix::Dense(ParamOf(args, k, d, Part::kWeightState), gates_, hidden_)),
         scratch + packed_state_[Lane(k, d)], panels.begin, panels.end);
      }
    }
  }

  void ForwardLayer(const KernelArgs& args, int64_t k, Range rows) const {
    float* const scratch = static_cast<float*>(args.scratch);
    Matrix x = BelowOf(args, k);
    if (k > 0 && Drops()) {
      float* const dropped = scratch + dropped_forward_;
      for (int64_t n = rows.begin; n < rows.end; ++n) Drop(args, k - 1, n, x.data, dropped);
      x.data = dropped;
    }
    for (int64_t d = 0; d < directions_; ++d) {
      InputHalf(args, k, d, x, rows);
      for (int64_t i = 0; i < steps_; ++i) {
        ForwardStep(args, k, d, d == 0 ? i : steps_ - 1 - i, i == 0, rows);
      }
    }
  }

  void InputHalf(const KernelArgs& args, int64_t k, int64_t d, const ConstMatrix& x,
                 Range rows) const {
    const float* const scratch = static_cast<const float*>(args.scratch);
    const Range all = {rows.begin * steps_, rows.end * steps_};
    DTRAIN_ISA_SELECT(device_.isa, MultiplyPacked)
    ({.a = x.Rows(all),
      .packed = scratch + packed_in_[Lane(k, d)],
      .bias = ParamOf(args, k, d, Part::kBiasIn),
      .c = GatesOf(args, k, d).Rows(all)},
     0, PanelsOf(gates_));
  }

  // Computes the state half of step t for samples `rows`, then the cell.
  void ForwardStep(const KernelArgs& args, int64_t k, int64_t d, int64_t t, bool first,
                   Range rows) const {
    float* const scratch = static_cast<float*>(args.scratch);
    const int64_t t_before = d == 0 ? t - 1 : t + 1;
    const Matrix from_state = Matrix::Dense(scratch + from_state_, batch_, gates_);
    const Matrix states = StatesOf(args, k, d);
    const float* const bias = ParamOf(args, k, d, Part::kBiasState);
    if (first) {
      for (int64_t n = rows.begin; n < rows.end; ++n) {
        std::copy_n(bias, gates_, from_state.Row(n));
      }
    } else {
      DTRAIN_ISA_SELECT(device_.isa, MultiplyPacked)
      ({.a = StepOf(states, t_before, rows),
        .packed = scratch + packed_state_[Lane(k, d)],
        .bias = bias,
        .c = from_state.Rows(rows)},
       0, PanelsOf(gates_));
    }
    for (int64_t n = rows.begin; n < rows.end; ++n) {
      CellStep step = StepAt(args, k, d, n, t, first, scratch + zeros_);
      float* const state = states.Row(n * steps_ + t);
      if (t >= LengthOf(args, n)) {
        std::fill_n(step.row, row_, 0.0f);
        std::fill_n(state, hidden_, 0.0f);
        continue;
      }
      step.from_state = from_state.Row(n);
      cell_->Forward(device_.isa, step, state);
    }
  }

  // Returns the cell's view of the step and of the previous one.  The reverse direction reads a sentence's padding
  // first; its states and rows are 0, so the sentence itself starts from zeros.
  CellStep StepAt(const KernelArgs& args, int64_t k, int64_t d, int64_t n, int64_t t, bool first,
                  const float* zeros) const {
    const int64_t at = n * steps_ + t, before = d == 0 ? at - 1 : at + 1;
    const Matrix rows = RowsOf(args, k, d);
    return {rows.Row(at), first ? zeros : rows.Row(before), nullptr,
            first ? zeros : StatesOf(args, k, d).Row(before), hidden_};
  }

  // ---- dropout between layers, applied to the output of layer k for sample n
  void Drop(const KernelArgs& args, int64_t k, int64_t n, const float* from, float* to) const {
    const int64_t size = steps_ * width_;
    if (!Drops()) {
      if (from != to) std::copy_n(from + n * size, size, to + n * size);
      return;
    }
    const Random random =
        RecurrentDropout(args.seed, layer_index_, k, args.step, args.first_position + n);
    const DropoutSample sample = SampleOf(random, layer_.dropout());
    DTRAIN_ISA_SELECT(device_.isa, DropElements)(sample, from + n * size, size, to + n * size);
  }

  void DropLayer(const KernelArgs& args, const float* from, int64_t k, float* to) const {
    ParallelFor(device_.threads, batch_, [&](int64_t n) { Drop(args, k, n, from, to); });
  }

  // ---- backward
  void PackBackward(const KernelArgs& args, int thread, int team) const {
    float* const scratch = static_cast<float*>(args.scratch);
    const Range panels = SplitEvenly({0, PanelsOf(hidden_)}, team, thread);
    for (int64_t k = 0; k < layer_.layers(); ++k) {
      for (int64_t d = 0; d < directions_; ++d) {
        const ConstMatrix w =
            ConstMatrix::Dense(ParamOf(args, k, d, Part::kWeightState), gates_, hidden_);
        for (size_t p = 0; p < parts_.size(); ++p) {
          const int64_t first = parts_[p].gate * hidden_, depth = parts_[p].gates * hidden_;
          DTRAIN_ISA_SELECT(device_.isa, PackPanels)
          (PackSource::WholeTransposed(w.Rows({first, first + depth})),
           scratch + PackedBack(k, d, p), panels.begin, panels.end);
        }
      }
    }
  }
  int64_t PackedBack(int64_t k, int64_t d, size_t part) const {
    return packed_back_[static_cast<size_t>(Lane(k, d)) * parts_.size() + part];
  }

  // Computes one direction of one layer: the gradients by the gates, then those of its parameters.
  void BackwardDirection(const KernelArgs& args, int64_t k, int64_t d) const {
    RunTeam(device_.threads, [&](int thread, int team) {
      const Range rows = SplitEvenly({0, batch_}, team, thread);
      if (rows.size() > 0) BackwardSteps(args, k, d, rows);
    });
    float* const scratch = static_cast<float*>(args.scratch);
    const int64_t in = InputsOf(k);
    const Matrix x = k == 0 ? BelowOf(args, k) : All(scratch + dropped_, in);
    const Matrix drows = RowsOf(args, k, d), dgates = GatesOf(args, k, d);
    const Matrix before = All(scratch + before_, hidden_);
    const auto gradient = [&](Part part) { return GradientOf(args, k, d, part); };
    WeightGradient(dgates, x, args.accumulate,
                   Matrix::Dense(gradient(Part::kWeightIn), gates_, in));
    SumOverRows(device_, dgates, args.accumulate, gradient(Part::kBiasIn));
    const Matrix dw = Matrix::Dense(gradient(Part::kWeightState), gates_, hidden_);
    for (const auto& part : parts_) {
      const int64_t first = part.gate * hidden_, count = part.gates * hidden_;
      const Matrix dpart = drows.Columns(part.first, count);
      WeightGradient(dpart, before, args.accumulate, dw.Rows({first, first + count}));
      SumOverRows(device_, dpart, args.accumulate, gradient(Part::kBiasState) + first);
    }
  }

  float* GradientOf(const KernelArgs& args, int64_t k, int64_t d, Part part) const {
    return args.param_gradients[layer_.ParamOf(k, d, part)].f32();
  }

  void BackwardSteps(const KernelArgs& args, int64_t k, int64_t d, Range rows) const {
    float* const scratch = static_cast<float*>(args.scratch);
    std::fill_n(scratch + dstate_ + rows.begin * hidden_, rows.size() * hidden_, 0.0f);
    std::fill_n(scratch + dcarry_ + rows.begin * hidden_, rows.size() * hidden_, 0.0f);
    for (int64_t i = steps_ - 1; i >= 0; --i) {
      const int64_t t = d == 0 ? i : steps_ - 1 - i;
      for (int64_t n = rows.begin; n < rows.end; ++n) BackwardCell(args, k, d, n, t, i == 0);
      if (i > 0) StateGradients(args, k, d, t, rows);
    }
  }

  void BackwardCell(const KernelArgs& args, int64_t k, int64_t d, int64_t n, int64_t t,
                    bool first) const {
    float* const scratch = static_cast<float*>(args.scratch);
    const CellStep step = StepAt(args, k, d, n, t, first, scratch + backward_zeros_);
    std::copy_n(step.state_before, hidden_, scratch + before_ + (n * steps_ + t) * hidden_);
    float* const dstate = scratch + dstate_ + n * hidden_;
    if (t >= LengthOf(args, n)) return std::fill_n(dstate, hidden_, 0.0f), void();
    const bool last = k == layer_.layers() - 1;
    const Matrix dys = All(last ? args.output_gradients[0].f32() : scratch + dbelow_, width_);
    const float* const dy = dys.Row(n * steps_ + t) + d * hidden_;
    for (int64_t j = 0; j < hidden_; ++j) dstate[j] += dy[j];
    cell_->Backward(device_.isa, step, dstate, scratch + dcarry_ + n * hidden_);
  }

  // Adds the part of the gradient that passes through W_h to dstate.
  void StateGradients(const KernelArgs& args, int64_t k, int64_t d, int64_t t, Range rows) const {
    float* const scratch = static_cast<float*>(args.scratch);
    const Matrix dgates = StepOf(RowsOf(args, k, d), t, rows);
    const Matrix dstate = Matrix::Dense(scratch + dstate_, batch_, hidden_).Rows(rows);
    for (size_t p = 0; p < parts_.size(); ++p) {
      DTRAIN_ISA_SELECT(device_.isa, MultiplyPacked)
      ({.a = dgates.Columns(parts_[p].first, parts_[p].gates * hidden_),
        .packed = scratch + PackedBack(k, d, p),
        .bias = nullptr,
        .c = dstate,
        .add = true},
       0, PanelsOf(hidden_));
    }
  }

  // Computes the gradient by the input of layer k: x, or the output of layer k - 1 after dropout.
  void InputGradients(const KernelArgs& args, int64_t k, float* dx) const {
    const int64_t in = InputsOf(k);
    for (int64_t d = 0; d < directions_; ++d) {
      Multiply({.a = GatesOf(args, k, d),
                .b = ConstMatrix::Dense(ParamOf(args, k, d, Part::kWeightIn), gates_, in),
                .c = All(dx, in),
                .add = d > 0});
    }
  }

  const RecurrentLayer& layer_;
  const std::unique_ptr<RecurrentCell> cell_;
  const uint64_t layer_index_;
  const int64_t batch_, steps_, features_, hidden_, directions_;
  const int64_t gates_;  // G H
  const int64_t width_;  // D H
  const int64_t row_;    // floats of a row
  const std::vector<RecurrentCell::StatePart> parts_;
  const bool training_;
  const Device device_;

  FloatRoom forward_, backward_, saved_;
  std::vector<int64_t> packed_in_, packed_state_, rows_, outputs_, packed_back_;
  int64_t zeros_ = 0, from_state_ = 0, dropped_forward_ = 0;
  int64_t backward_zeros_ = 0, dropped_ = 0, dbelow_ = 0, before_ = 0, dstate_ = 0, dcarry_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> MakeRecurrent(const KernelRequest& request,
                                      std::unique_ptr<RecurrentCell> cell) {
  return std::make_unique<RecurrentKernel>(request, std::move(cell));
}

}  // namespace dtrain
