// Layer describes one node of a model: keys, shapes, parameters, cost.  It depends on no device: Kernels (kernel.h) do
// the arithmetic, and one folder layers/<type>/ holds both.  Types that share their kernels have one folder together
// (layers/activations/).
//
// A new layer is a new folder:
//   layers/lrn/  lrn.h lrn.cc (the Layer)  lrn_cpu.cc (its kernels)
//                lrn_cases.cc (the double-precision reference, and the cases every test suite runs)
//   DTRAIN_LAYER("lrn", Lrn, "local response normalisation");
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/config/reader.h"
#include "framework/core/registry.h"
#include "framework/device/shape.h"

namespace dtrain {

struct PoolingWindows;  // pooling_windows.h

// Upper limits of a layer's counts (channels, lengths), and of the sizes in pixels of a window, a pad or a stride.
// With any values below them, shapes and costs can be computed without overflow.
inline constexpr int64_t kLargestExtent = 2'147'483'647;
inline constexpr int64_t kLargestWindow = 32'767;

// Describes the initial values of a parameter (initializer.h).  The layer states fan_in and fan_out.
struct InitSpec {
  std::string name = "constant";  // constant, gaussian, xavier, kaiming
  float value = 0;                // constant: the value; gaussian: the standard deviation
  bool fan_out = false;           // kaiming: by fan_out, not by fan_in
};

struct ParamSpec {
  std::string name;  // "weight", "bias": PyTorch's names
  Shape shape;       // PyTorch's axes
  InitSpec init;
  int64_t fan_in = 1;
  int64_t fan_out = 1;
  bool weight_decay = true;
};

// Describes a state of a worker that is no parameter (batch-norm statistics).  For frozen layers with state see
// kernel.h.
struct StateSpec {
  std::string name;
  Shape shape;
  float initial = 0;
};

struct Cost {
  double forward_flops = 0;  // a multiply-add counts 2
  double backward_flops = 0;
};

enum class LayerRole {
  kCompute,
  kLoss,  // output 0 is each sample's loss, [N]; the net sums it
  // Output 0 is one count per sample, [N] (1 = correct); it has no backward pass.
  kMetric,
};

// ScoreMeaning is the meaning of a loss's scores, input 0.
enum class ScoreMeaning {
  kClasses,    // one class of many: softmax gives its probability
  kQuestions,  // separate yes/no answers: sigmoid gives the probability of yes
  kNumbers,    // the predicted numbers themselves
};

// Lists the kinds of inputs.
enum class InputKind {
  kNumbers,  // fp32
  kClasses,  // int32: classes, or tokens
  kEither,
};

class WorkerSums;  // kernel.h

class Layer {
 public:
  virtual ~Layer() = default;

  // Reads the keys of this layer type; called once, before InferShapes.
  virtual void Configure(config::Reader& reader) {}

  // Sets the number of values that each input may take, 0 if that is unknown or does not apply (for tokens it is the
  // vocabulary's size).  Called once, between Configure and InferShapes.
  virtual void SetInputClasses(std::span<const int64_t> classes) {}

  // Returns the shapes of the outputs, batch axis included.  Also fixes the results of Params and CostOf, which do not
  // depend on the batch axis.  Throws ShapeError with both shapes (Graph adds the layer's name).  It is called again
  // before kernels are made for a batch of shorter sentences (Graph::ShapesFor), so kernels must take shapes from their
  // request, when they are made.
  virtual std::vector<Shape> InferShapes(std::span<const Shape> inputs) = 0;

  virtual std::vector<ParamSpec> Params() const { return {}; }
  virtual std::vector<StateSpec> State() const { return {}; }
  virtual Cost CostOf(std::span<const Shape> inputs) const { return {}; }  // after InferShapes
  virtual LayerRole role() const { return LayerRole::kCompute; }
  // Returns, for a loss, the number of classes of its labels, each with a score (last axis of input 0); 0: unknown, or
  // no classes.
  virtual int64_t label_classes() const { return 0; }
  virtual ScoreMeaning score_meaning() const { return ScoreMeaning::kClasses; }  // for a loss
  // Returns, for an accuracy, how many classes a sample may be given, one of which is right: k of the top k.  0: the
  // layer is no accuracy.
  virtual int64_t accepted_answers() const { return 0; }

  // Returns the number of inputs; kAnyInputs: one or more, kTwoOrMoreInputs: two or more.
  static constexpr int kAnyInputs = -1;
  static constexpr int kTwoOrMoreInputs = -2;
  virtual int input_count() const { return 1; }
  virtual InputKind input_kind(int input) const { return InputKind::kNumbers; }
  // False for an input without a gradient (labels).
  virtual bool InputHasGradient(int input) const { return true; }
  // True if the output is input 0 with another shape: the net shares the memory and runs no kernel.
  virtual bool is_view() const { return false; }
  // Returns the windows of max pooling, valid after InferShapes; null for another layer.  Max pooling commutes with a ReLU,
  // gradients included: fusion moves one from before it to after it, and may let the kernel of the layer before it
  // compute the maxima.
  virtual const PoolingWindows* max_windows() const { return nullptr; }

  // True if the output is the sum of the inputs: fusion may let the kernel of an input's layer add the other input.
  virtual bool adds_inputs() const { return false; }

  // Makes the layer sum over workers, for the run config's `batch_norm: sync`; called before the graph is compiled.
  virtual void SyncWorkers() {}
  virtual bool syncs_workers() const { return false; }
  // Called on a worker without samples when the others run the layer: takes part in their sums, and updates its state
  // (State() order) alike.
  virtual void ForwardWithoutSamples(WorkerSums& sums, std::span<float* const> state) const {}
  virtual void BackwardWithoutSamples(WorkerSums& sums) const {}
};

struct LayerEntry {
  std::function<std::unique_ptr<Layer>()> make;
  std::string help;
};

using LayerRegistry = Registry<LayerEntry>;

}  // namespace dtrain

#define DTRAIN_LAYER(type, Class, help_text)                                                  \
  [[maybe_unused]] static const bool Class##_layer_registered = ::dtrain::LayerRegistry::Add( \
      type, {[] { return std::unique_ptr<::dtrain::Layer>(new Class); }, help_text})
