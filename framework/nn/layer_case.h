// Defines the test data of a layer: a double-precision reference and the cases on which every device and implementation
// is checked.  It is in layers/<type>/<type>_cases.cc, which only the tests compile; a layer without cases fails the
// suite.
//
//   DTRAIN_LAYER_CASES("relu", ReluReference, {{"vector", "{}", {{4, 10}}}, ...});
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/core/registry.h"
#include "framework/nn/kernel.h"

namespace dtrain {

struct RefTensor {
  Shape shape;
  std::vector<double> values;  // row-major; integers are exact
};

// RefArgs is like KernelArgs, with every array owned and double.
struct RefArgs {
  std::vector<RefTensor> inputs, outputs, output_gradients, input_gradients;
  std::vector<RefTensor> params, param_gradients;
  std::vector<RefTensor> state;       // before the step
  std::vector<RefTensor> next_state;  // starts as `state`; Forward writes the updated state
  Mode mode = Mode::kTrain;
  double loss_scale = 1;
  uint64_t seed = 0, step = 0, layer_index = 0;
  int64_t first_position = 0;
};

// Implements a layer in plain loops that can be compared with the formula (<type>_cases.cc).
class LayerReference {
 public:
  virtual ~LayerReference() = default;
  virtual void Forward(const Layer& layer, RefArgs& args) const = 0;   // fills outputs
  virtual void Backward(const Layer& layer, RefArgs& args) const = 0;  // fills the gradients
};

struct LayerCase {
  std::string name;
  std::string yaml;  // the layer's keys, "{outputs: 6, kernel: 5}"
  std::vector<Shape> inputs;
  int64_t label_classes = 0;        // > 0: the last input holds int32 labels in [0, classes)
  bool central_differences = true;  // check the reference against finite differences
  // Multiplies the tolerance: the kernel's roundings relative to a plain sum (1 = no more).
  double tolerance = 1;
  // Per input: 0 for numbers, else int32 in [0, classes); those of rank 2 are sentences: words, followed by the layer's
  // padding token.  Empty: label_classes decides, and integers of any rank are labels.
  std::vector<int64_t> input_classes = {};
};

struct LayerCaseEntry {
  std::function<std::unique_ptr<LayerReference>()> reference;
  std::vector<LayerCase> cases;
};

using LayerCaseRegistry = Registry<LayerCaseEntry>;

}  // namespace dtrain

#define DTRAIN_LAYER_CASES(type, Reference, ...)                    \
  [[maybe_unused]] static const bool Reference##_cases_registered = \
      ::dtrain::LayerCaseRegistry::Add(                             \
          type,                                                     \
          {[] { return std::unique_ptr<::dtrain::LayerReference>(new Reference); }, __VA_ARGS__})
