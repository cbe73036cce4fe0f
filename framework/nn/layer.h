// Layer: the facts about one node of a model - keys, shapes, parameters, cost.  Device-free: the
// arithmetic is in Kernels (kernel.h), one folder layers/<type>/ holds both.
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

// The most of what a layer counts (channels, lengths), and of the pixels of a window, a pad or a stride:
// shapes and costs made of them can be computed, whatever they are.
inline constexpr int64_t kLargestExtent = 2'147'483'647;
inline constexpr int64_t kLargestWindow = 32'767;

// How a parameter starts (initializer.h).  fan_in and fan_out are the layer's to say.
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

// Worker state that is no parameter (batch-norm statistics).  Kernels of a layer with state keep what kernel.h says
// of frozen layers.
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
  kLoss,    // output 0 is the loss of each sample, [N]; the net sums it
  kMetric,  // output 0 is a count of each sample, [N] (1 = correct); no backward
};

// What a loss takes its scores, input 0, for.
enum class ScoreMeaning {
  kClasses,    // one class of many: their softmax is the probability of each
  kQuestions,  // each a question of its own: its sigmoid is the probability of yes
  kNumbers,    // the answer themselves
};

// What a layer takes an input for.
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

  // How many values each input may take, 0 where that is unknown or makes no sense (a vocabulary's
  // size for tokens).  Called once, between Configure and InferShapes.
  virtual void SetInputClasses(std::span<const int64_t> classes) {}

  // Shapes of the outputs, batch axis included.  Also fixes what Params and CostOf answer, which
  // depends on no batch axis.  Throws ShapeError with both shapes (Graph adds the layer's name).
  // Called again before kernels are made for a batch of shorter sentences (Graph::ShapesFor), so
  // kernels take what depends on shapes from their request, once.
  virtual std::vector<Shape> InferShapes(std::span<const Shape> inputs) = 0;

  virtual std::vector<ParamSpec> Params() const { return {}; }
  virtual std::vector<StateSpec> State() const { return {}; }
  virtual Cost CostOf(std::span<const Shape> inputs) const { return {}; }  // after InferShapes
  virtual LayerRole role() const { return LayerRole::kCompute; }
  // Of a loss: the classes that its labels are of, each of which has a score (the last axis of input 0); 0: unknown,
  // or none.
  virtual int64_t label_classes() const { return 0; }
  virtual ScoreMeaning score_meaning() const { return ScoreMeaning::kClasses; }  // of a loss

  // How many inputs it takes; kAnyInputs: one or more, kTwoOrMoreInputs.
  static constexpr int kAnyInputs = -1;
  static constexpr int kTwoOrMoreInputs = -2;
  virtual int input_count() const { return 1; }
  virtual InputKind input_kind(int input) const { return InputKind::kNumbers; }
  // False for an input no gradient flows into (labels).
  virtual bool InputHasGradient(int input) const { return true; }
  // Output i is input 0 seen with another shape: the net shares the memory, no kernel runs.
  virtual bool is_view() const { return false; }
  // max(0, layer(x)) == layer(max(0, x)) with equal gradients (max pooling): fusion moves a ReLU
  // from before such a layer to behind it.
  virtual bool commutes_with_relu() const { return false; }

  // --- layers whose result depends on the samples of all workers (batch_norm with `sync`)
  // Asks the layer to be one, for the run config's `batch_norm: sync`; before it is compiled.
  virtual void SyncWorkers() {}
  virtual bool syncs_workers() const { return false; }
  // What a worker without samples does where the others run the layer: it takes part in their sums,
  // and brings its state (State() order) along.
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
