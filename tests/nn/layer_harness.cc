#include "tests/nn/layer_harness.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "framework/core/random.h"
#include "framework/nn/tokens.h"
#include "tests/nn/reference_net.h"

namespace dtrain {
namespace {

constexpr uint64_t kSeed = 77;

std::vector<RefTensor> Zeros(const std::vector<Shape>& shapes) {
  std::vector<RefTensor> tensors;
  for (const Shape& shape : shapes) tensors.push_back(Zeros(shape));
  return tensors;
}

// Returns a random permutation of numbers evenly spaced over (-1, 1), without 0.
RefTensor Distinct(const Shape& shape, uint64_t stream) {
  RefTensor tensor = Zeros(shape);
  const auto count = static_cast<uint64_t>(shape.count());
  const Random random(kSeed, Purpose::kSelfTest, stream);
  std::vector<uint64_t> rank(count);
  std::iota(rank.begin(), rank.end(), 0);
  for (uint64_t i = count; i > 1; --i) std::swap(rank[i - 1], rank[random.Below(i, i)]);
  for (uint64_t i = 0; i < count; ++i) {
    const double value = (static_cast<double>(rank[i]) + 0.25) / static_cast<double>(count);
    tensor.values[i] = static_cast<float>(2 * value - 1);
  }
  return tensor;
}

RefTensor Labels(const Shape& shape, int64_t classes, uint64_t stream) {
  RefTensor tensor = Zeros(shape);
  const Random random(kSeed, Purpose::kSelfTest, stream);
  for (size_t i = 0; i < tensor.values.size(); ++i) {
    tensor.values[i] = static_cast<double>(random.Below(i, static_cast<uint64_t>(classes)));
  }
  return tensor;
}

// Returns sentences of all lengths from 1 to T, one per row, with padding at the end only.
RefTensor Sentences(const Shape& shape, int64_t classes, int64_t pad, uint64_t stream) {
  RefTensor tensor = Labels(shape, classes, stream);
  const int64_t steps = shape[1];
  for (int64_t n = 0; n < shape[0]; ++n) {
    const int64_t length = steps - n % steps;
    for (int64_t t = 0; t < steps; ++t) {
      double& token = tensor.values[n * steps + t];
      if (static_cast<int64_t>(token) == pad) token = static_cast<double>((pad + 1) % classes);
      if (t >= length) token = static_cast<double>(pad);
    }
  }
  return tensor;
}

void RoundTo(DType type, std::vector<RefTensor>& tensors, int least_rank) {
  for (RefTensor& tensor : tensors) {
    if (tensor.shape.rank() < least_rank) continue;
    for (double& value : tensor.values) value = RoundedTo(type, static_cast<float>(value));
  }
}

// Returns the classes of each input.  If the case does not give them, the last input has
// label_classes.
std::vector<int64_t> ClassesOf(const LayerCase& layer_case) {
  std::vector<int64_t> classes = layer_case.input_classes;
  classes.resize(layer_case.inputs.size());
  if (layer_case.input_classes.empty()) classes.back() = layer_case.label_classes;
  return classes;
}

}  // namespace

CaseSetup::CaseSetup(const std::string& type, const LayerCase& layer_case, int64_t batch)
    : type_(type),
      layer_(LayerRegistry::Get("layer", type).make()),
      reference_(LayerCaseRegistry::Get("layer with cases", type).reference()),
      inputs_(layer_case.inputs),
      classes_(dtrain::ClassesOf(layer_case)),
      sentences_(!layer_case.input_classes.empty()) {
  config::Document document = config::Document::FromText(layer_case.yaml, layer_case.name);
  config::Reader root = document.root();
  layer_->Configure(root);
  if (sentences_) pad_ = root.Int("pad", kPadToken);
  document.Finish();
  layer_->SetInputClasses(classes_);
  for (Shape& shape : inputs_) {
    if (batch > 0) shape = shape.WithBatch(batch);
  }
  outputs_ = layer_->InferShapes(inputs_);
}

RefArgs CaseSetup::Draw(Mode mode) const {
  RefArgs args;
  args.mode = mode;
  args.seed = kSeed;
  args.step = 3;
  args.layer_index = 5;
  args.first_position = 40;
  args.loss_scale = 0.125;
  uint64_t stream = 0;
  for (const Shape& shape : inputs_) {
    const int64_t classes = classes_[stream];
    const bool sentences = sentences_ && classes > 0 && shape.rank() == 2;
    args.inputs.push_back(sentences     ? Sentences(shape, classes, pad_, stream)
                          : classes > 0 ? Labels(shape, classes, stream)
                                        : Distinct(shape, stream));
    if (classes == 0 && layer_->role() == LayerRole::kLoss && stream > 0) {
      // A loss's targets may be probabilities.
      for (double& value : args.inputs.back().values) value = static_cast<float>((value + 1) / 2);
    }
    ++stream;
  }
  for (const ParamSpec& spec : layer_->Params()) {
    args.params.push_back(Distinct(spec.shape, ++stream));
  }
  for (const StateSpec& spec : layer_->State()) {
    RefTensor& state = args.state.emplace_back(Distinct(spec.shape, ++stream));
    for (double& value : state.values) value = static_cast<float>(spec.initial + value / 2);
  }
  args.next_state = args.state;
  args.outputs = Zeros(outputs_);
  for (const Shape& shape : outputs_) args.output_gradients.push_back(Distinct(shape, ++stream));
  return args;
}

RefArgs CaseSetup::Forward(Mode mode) const {
  RefArgs args = Draw(mode);
  reference_->Forward(*layer_, args);
  return args;
}

void CaseSetup::FuseRelu(RefArgs& args, double near_zero) const {
  for (size_t i = 0; i < args.outputs[0].values.size(); ++i) {
    double& y = args.outputs[0].values[i];
    if (y < near_zero) args.output_gradients[0].values[i] = 0;
    y = std::max(y, 0.0);
  }
}

void CaseSetup::Backward(RefArgs& args) const {
  args.input_gradients = Zeros(inputs_);
  args.param_gradients.clear();
  for (const ParamSpec& spec : layer_->Params()) args.param_gradients.push_back(Zeros(spec.shape));
  reference_->Backward(*layer_, args);
}

float ToBf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t even = bits >> 16 & 1;
  return std::bit_cast<float>((bits + 0x7fff + even) & 0xffff0000);
}

float RoundedTo(DType type, float value) {
  if (type == DType::kF16) return static_cast<float>(static_cast<_Float16>(value));
  return type == DType::kBF16 ? ToBf16(value) : value;
}

RefArgs CaseSetup::RoundedTo(DType type, RefArgs args, bool weights) const {
  RoundTo(type, args.inputs, 1);
  if (weights) RoundTo(type, args.params, 2);
  RoundTo(type, args.output_gradients, 1);
  reference_->Forward(*layer_, args);
  return args;
}

}  // namespace dtrain
