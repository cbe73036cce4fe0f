// What the layer suite runs a case with: the layer, its reference in double, and its kernels on
// memory that is poisoned wherever a kernel must not look.
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

  const Layer& layer() const { return *layer_; }
  const LayerReference& reference() const { return *reference_; }
  const std::vector<Shape>& input_shapes() const { return inputs_; }
  const std::vector<Shape>& output_shapes() const { return outputs_; }
  // 0: the input holds numbers; else int32 below this.
  int64_t ClassesOf(size_t input) const { return classes_[input]; }
  bool HasGradient(size_t input) const { return layer_->InputHasGradient(static_cast<int>(input)); }

  bool HasState() const { return !layer_->State().empty(); }
  // Whether its kernels have a backward pass: in evaluation where a frozen layer trains with them.
  bool HasBackward(Mode mode) const {
    return mode == Mode::kTrain ? layer_->role() != LayerRole::kMetric : HasState();
  }

  // Random inputs, parameters and output gradients (all exact in fp32), outputs and gradients zero.  Inputs are
  // distinct and far from 0, so that no kink is near.
  RefArgs Draw(Mode mode) const;
  // The same with the outputs computed, which takes long.
  RefArgs Forward(Mode mode) const;
  // The gradients, filled; `fused_relu` puts a ReLU behind the layer: args then hold its outputs.  Where an
  // output is below `near_zero`, so that rounding may decide on its side, no gradient flows, on either side.
  void FuseRelu(RefArgs& args, double near_zero) const;
  void Backward(RefArgs& args) const;

  // The same layer with inputs, weights and output gradients rounded to bf16: what a bf16 kernel
  // computes of the ones that are not.  Biases stay.
  RefArgs RoundedToBf16(RefArgs args) const;

 private:
  std::unique_ptr<Layer> layer_;
  std::unique_ptr<LayerReference> reference_;
  std::vector<Shape> inputs_;
  std::vector<Shape> outputs_;
  std::vector<int64_t> classes_;  // by input
  bool sentences_;                // integers of rank 2 are sentences, not labels
  int64_t pad_ = 0;               // the token, of sentences
};

// One implementation, one set of formats, one device.
struct KernelVariant {
  const KernelEntry* entry = nullptr;
  Device device;
  std::vector<Format> available;
  KernelOffer offer;
  bool fused_relu = false;
  Mode mode = Mode::kTrain;
  std::string ToString() const;
};

// Where the suite's kernels run; the program that the suite is linked into says.
Device DeviceUnderTest(Precision precision = Precision::kFp32);

// Every variant of the layer's kernels that this machine can run.  On the CPU: each instruction set
// with one thread, the best one also with two, and what bf16 adds to those.  On the GPU: bf16 as well
// where the layer is one product or sum of products of its inputs, so that the reference can round them.
std::vector<KernelVariant> VariantsOf(const std::string& type, const CaseSetup& setup, Mode mode);

struct RunOptions {
  bool accumulate = false;  // parameter gradients start at 1 instead of unspecified
  bool wants_input_gradients = true;
  bool in_place = false;  // where the kernel says it can
  int64_t first_row = 0;  // run rows [first_row, first_row + rows) of the batch only
  int64_t rows = -1;
  WorkerSums* worker_sums = nullptr;
};

// Whether the kernel can share memory between input and output, forward or backward.
bool CanRunInPlace(const CaseSetup& setup, const KernelVariant& variant);

// What a kernel computed, in plain order; no gradients of parameters in evaluation.
struct KernelResult {
  std::vector<std::vector<float>> outputs, input_gradients, param_gradients, state;
};

// Runs the variant on the inputs of `args`, backward where the mode has that (CaseSetup::HasBackward).
KernelResult RunKernel(const CaseSetup& setup, const KernelVariant& variant, const RefArgs& args,
                       const RunOptions& options = {});

}  // namespace dtrain
