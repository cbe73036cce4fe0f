// A single layer with its kernel, on arrays that the test fills, for tests that the layer suite cannot express because
// it fills the arrays itself.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "framework/nn/kernel.h"

namespace dtrain {

// Returns the layer of this type with these keys.  Throws ConfigError if a key is wrong.
inline std::unique_ptr<Layer> MadeLayer(const std::string& type, const std::string& keys = "{}") {
  auto layer = LayerRegistry::Get("layer", type).make();
  config::Document document = config::Document::FromText(keys, "keys");
  config::Reader reader = document.root();
  layer->Configure(reader);
  document.Finish();
  return layer;
}

// Owned numbers or int32 tokens, with the view that a kernel gets.
struct LayerArray {
  std::vector<float> values;
  Tensor tensor;

  explicit LayerArray(const Shape& shape, DType dtype = DType::kF32)
      : values(static_cast<size_t>(shape.count())), tensor{values.data(), shape, dtype} {}
};

struct LayerRunOptions {
  Mode mode = Mode::kTrain;
  int threads = 1;
  uint64_t seed = 0, step = 0;
};

// `classes` has, by input, 0 for numbers or the number of tokens.
class LayerRun {
 public:
  LayerRun(const std::string& type, const std::string& keys, const std::vector<Shape>& shapes,
           const std::vector<int64_t>& classes, const LayerRunOptions& options = {})
      : options_(options), layer_(MadeLayer(type, keys)) {
    layer_->SetInputClasses(classes);
    KernelRequest& request = request_;
    request.layer = layer_.get();
    request.inputs = shapes;
    request.outputs = layer_->InferShapes(shapes);
    request.device = {DeviceKind::kCpu, options.threads, CpuIsa()};
    request.mode = options.mode;
    for (size_t i = 0; i < shapes.size(); ++i) {
      inputs.emplace_back(shapes[i], classes[i] > 0 ? DType::kI32 : DType::kF32);
      input_gradients.emplace_back(shapes[i]);
      request.available.push_back(Format::kPlain);
      request.needs_input_gradient.push_back(HasGradient(i));
    }
    outputs.emplace_back(request.outputs[0]);
    output_gradients.emplace_back(request.outputs[0]);
    for (const ParamSpec& spec : layer_->Params()) {
      params.emplace_back(spec.shape);
      param_gradients.emplace_back(spec.shape);
    }
    const KernelEntry& entry = KernelRegistry::Of(type, DeviceKind::kCpu).front();
    kernel_ = entry.make(request, *entry.offer(request));
    scratch_.resize(kernel_->Needs().scratch_bytes);
    saved_.resize(kernel_->Needs().saved_bytes);
  }

  void Forward() { kernel_->Forward(Args()); }
  void Backward() { kernel_->Backward(Args()); }

  // Valid until the next call.
  KernelArgs Args() {
    Look(inputs, views_[0]);
    Look(outputs, views_[1]);
    Look(params, views_[2]);
    Look(output_gradients, views_[3]);
    Look(input_gradients, views_[4]);
    Look(param_gradients, views_[5]);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!HasGradient(i)) views_[4][i].data = nullptr;
    }
    KernelArgs args;
    args.inputs = views_[0];
    args.outputs = views_[1];
    args.params = views_[2];
    args.output_gradients = views_[3];
    args.input_gradients = views_[4];
    args.param_gradients = views_[5];
    args.scratch = scratch_.data();
    args.saved = saved_.data();
    args.seed = options_.seed;
    args.step = options_.step;
    return args;
  }

  Layer& layer() { return *layer_; }
  const KernelRequest& request() const { return request_; }
  Kernel& kernel() { return *kernel_; }

  std::vector<LayerArray> inputs, outputs, params;
  std::vector<LayerArray> output_gradients, input_gradients, param_gradients;

 private:
  bool HasGradient(size_t input) const { return layer_->InputHasGradient(static_cast<int>(input)); }

  static void Look(const std::vector<LayerArray>& arrays, std::vector<Tensor>& views) {
    views.clear();
    for (const LayerArray& array : arrays) views.push_back(array.tensor);
  }

  const LayerRunOptions options_;
  std::unique_ptr<Layer> layer_;
  KernelRequest request_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<std::byte> scratch_, saved_;
  std::vector<Tensor> views_[6];
};

}  // namespace dtrain
