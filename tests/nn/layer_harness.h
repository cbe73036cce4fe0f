// The parts with which the layer suite runs a case: the layer, its reference in double, and its
// kernels on memory that is poisoned wherever a kernel must not look.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/device/buffer.h"
#include "framework/nn/layer_case.h"

namespace dtrain {

// A layer made from a case, with inputs drawn for it.
class CaseSetup {
 public:
  // `batch` > 0 replaces the batch size of the case.
  CaseSetup(const std::string& type, const LayerCase& layer_case, int64_t batch = 0);

  const std::string& type() const { return type_; }
  const Layer& layer() const { return *layer_; }
  const LayerReference& reference() const { return *reference_; }
  const std::vector<Shape>& input_shapes() const { return inputs_; }
  const std::vector<Shape>& output_shapes() const { return outputs_; }
  // Returns 0 if the input holds numbers; otherwise the input holds int32 values below the result.
  int64_t ClassesOf(size_t input) const { return classes_[input]; }
  bool HasGradient(size_t input) const { return layer_->InputHasGradient(static_cast<int>(input)); }

  bool HasState() const { return !layer_->State().empty(); }
  // True if the layer's kernels have a backward pass.  In evaluation only layers with state have
  // one, because they train that way when frozen; an estimate of the state is a forward pass.
  bool HasBackward(Mode mode) const {
    if (mode == Mode::kTrain) return layer_->role() != LayerRole::kMetric;
    return mode == Mode::kEvaluate && HasState();
  }

  // Returns random inputs, parameters and output gradients (all exact in fp32); outputs and
  // gradients are zero.  Inputs are distinct and far from 0, so that no kink is near.
  RefArgs Draw(Mode mode) const;
  // Does the same and computes the outputs, which is slow.
  RefArgs Forward(Mode mode) const;
  // FuseRelu puts a ReLU behind the layer, so that args hold its outputs.  An output below
  // `near_zero` may get another sign by rounding; it passes no gradient, in the reference as in the
  // kernel.  Backward fills the gradients.
  void FuseRelu(RefArgs& args, double near_zero) const;
  void Backward(RefArgs& args) const;

  // Returns args with inputs and output gradients rounded to 16 bits, with `weights` those as well, and
  // the outputs recomputed, as a kernel of that type computes them from values that are not rounded.  Biases
  // are not rounded.
  RefArgs RoundedTo(DType type, RefArgs args, bool weights) const;

 private:
  std::string type_;
  std::unique_ptr<Layer> layer_;
  std::unique_ptr<LayerReference> reference_;
  std::vector<Shape> inputs_;
  std::vector<Shape> outputs_;
  std::vector<int64_t> classes_;  // by input
  bool sentences_;                // rank-2 integers are sentences, not labels
  int64_t pad_ = 0;               // padding token of sentences
};

// Returns the nearest bf16 value, which has 8 significant bits; a tie goes to the even one.
float ToBf16(float value);
// Does so for bf16 or fp16; returns an fp32 value as it is.
float RoundedTo(DType type, float value);

// One implementation with one set of forms on one device.
struct KernelVariant {
  const KernelEntry* entry = nullptr;
  Device device;
  std::vector<Form> available;
  KernelOffer offer;
  bool fused_relu = false;
  Mode mode = Mode::kTrain;
  bool read_as_plain = false;
  std::string ToString() const;
};

// Returns the device that the suite's kernels run on.  Each program that links the suite defines this.
Device DeviceUnderTest(Precision precision = Precision::kFp32);
// Returns how large a batch may be whose parts are compared with it; likewise.
int64_t LargestBatch();

// Returns every variant of the layer's kernels that this machine can run.  On the CPU these are
// each instruction set with one thread, the best one also with two, and the kernels that exist for
// bf16 only.  On the GPU these are also the kernels that take images of 16 bits, and those of products with
// `precision: bf16` and fp16 if the layer is one product or sum of products of its inputs, so that the
// reference can round them.
std::vector<KernelVariant> VariantsOf(const std::string& type, const CaseSetup& setup, Mode mode);

struct RunOptions {
  bool accumulate = false;           // parameter gradients start at 1 instead of unspecified
  bool adds_input_gradient = false;  // the first starts at 1; for kernels that can add to it
  bool wants_input_gradients = true;
  bool in_place = false;  // if the kernel supports it
  int64_t first_row = 0;  // run rows [first_row, first_row + rows) of the batch only
  int64_t rows = -1;
  WorkerSums* worker_sums = nullptr;
};

KernelNeeds NeedsOf(const CaseSetup& setup, const KernelVariant& variant);

// True if the kernel can share memory between input and output, forward or backward.
bool CanRunInPlace(const CaseSetup& setup, const KernelVariant& variant);

// A kernel's results in plain format.  Parameter gradients are empty in evaluation.
struct KernelResult {
  std::vector<std::vector<float>> outputs, input_gradients, param_gradients, state;
};

// Runs the variant on the inputs of `args`, with the backward pass if the mode has one
// (CaseSetup::HasBackward).
KernelResult RunKernel(const CaseSetup& setup, const KernelVariant& variant, const RefArgs& args,
                       const RunOptions& options = {});

}  // namespace dtrain
