// Implements convolution on the CPU under the name "onednn", for every shape, including groups and dilation.
//
// Images are channels last.  With one input channel, plain has the same memory layout, so the offer asks for plain and
// no reordering is inserted; oneDNN's descriptor still says channels last, because oneDNN has no fast kernel from plain
// to channels last.  The weights stay in plain OIHW order in the arenas; oneDNN's packed copies of them and of their
// gradient are in scratch memory.
#include <algorithm>

#include "framework/core/check.h"
#include "framework/core/isa.h"
#include "framework/device/cpu/parallel.h"
#include "framework/kernels/cpu/loops.h"
#include "framework/kernels/cpu/onednn.h"
#include "framework/nn/kernel.h"
#include "layers/convolution/convolution.h"

namespace dtrain {
namespace {

using dnnl::convolution_backward_data;
using dnnl::convolution_backward_weights;
using dnnl::convolution_forward;

// Returns true if oneDNN should fuse the ReLU. Its kernels for AVX without AVX2 cannot: with a ReLU, oneDNN falls back
// to SSE, or to a matrix product that is divided by batch and threads, so that a sample's result would depend on its
// batch.  On such CPUs the ReLU is a separate pass.
bool OneDnnTakesRelu() { return CpuIsa() != Isa::kAvx; }

size_t AlignUp(size_t bytes) { return (bytes + 63) / 64 * 64; }

// Holds the descriptors in the net's formats; any_w lets oneDNN choose the format.
struct Descs {
  dnnl::memory::desc x, y, w, any_w, bias;
  dnnl::memory::dims strides, dilations, pads;
  bool has_bias;
};

convolution_forward::primitive_desc ForwardDesc(const Descs& d, bool relu) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (relu) {
    dnnl::post_ops ops;
    ops.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
    attr.set_post_ops(ops);
  }
  const auto kind = dnnl::prop_kind::forward_training;
  const auto algorithm = dnnl::algorithm::convolution_direct;
  const convolution_forward::desc desc =
      d.has_bias ? convolution_forward::desc(kind, algorithm, d.x, d.any_w, d.bias, d.y, d.strides,
                                             d.dilations, d.pads, d.pads)
                 : convolution_forward::desc(kind, algorithm, d.x, d.any_w, d.y, d.strides,
                                             d.dilations, d.pads, d.pads);
  return {desc, attr, OneDnnEngine()};
}

convolution_backward_data::primitive_desc DataDesc(
    const Descs& d, const convolution_forward::primitive_desc& hint) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return {{dnnl::algorithm::convolution_direct, d.x, d.any_w, d.y, d.strides, d.dilations, d.pads,
           d.pads},
          attr,
          OneDnnEngine(),
          hint};
}

// Returns true for oneDNN's kernels for 1x1 windows if there is a stride and fewer channels than a vector holds: they
// write past their workspace, which gives wrong gradients on several threads, or worse (uxlfoundation/oneDNN, issue
// 6035).
bool WritesPastItsWorkspace(const Descs& d, const std::string& implementation) {
  constexpr int64_t kWidestVector = 16;
  const auto weights = d.w.dims();
  const int64_t channels = weights[weights.size() - 3];  // of one group
  const bool strided = d.strides[0] > 1 || d.strides[1] > 1;
  return strided && channels < kWidestVector && implementation.starts_with("jit_1x1");
}

convolution_backward_weights::primitive_desc WeightsDesc(
    const Descs& d, const convolution_forward::primitive_desc& hint) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const auto algorithm = dnnl::algorithm::convolution_direct;
  const convolution_backward_weights::desc desc =
      d.has_bias ? convolution_backward_weights::desc(algorithm, d.x, d.any_w, d.bias, d.y,
                                                      d.strides, d.dilations, d.pads, d.pads)
                 : convolution_backward_weights::desc(algorithm, d.x, d.any_w, d.y, d.strides,
                                                      d.dilations, d.pads, d.pads);
  convolution_backward_weights::primitive_desc weights(desc, attr, OneDnnEngine(), hint);
  while (WritesPastItsWorkspace(d, weights.impl_info_str())) {
    DT_CHECK(weights.next_impl()) << "no other kernel than " << weights.impl_info_str();
  }
  return weights;
}

OneDnnOp ReorderOp(const dnnl::memory::desc& from, const dnnl::memory::desc& to) {
  const dnnl::reorder::primitive_desc desc(OneDnnEngine(), from, OneDnnEngine(), to);
  return OneDnnOp(dnnl::reorder(desc), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

class ConvolutionOneDnn : public Kernel {
 public:
  explicit ConvolutionOneDnn(const KernelRequest& request);

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    needs.scratch_bytes = packed_bytes_ + plain_bytes_ + scratchpad_bytes_;
    needs.backward_reads_inputs = true;
    needs.backward_reads_outputs = relu_;
    return needs;
  }
  void Forward(const KernelArgs& args) override;
  void Backward(const KernelArgs& args) override;

 private:
  void BackwardWeights(const KernelArgs& args);
  void BackwardData(const KernelArgs& args);
  void Rectify(float* y) const;
  // The scratch memory holds the packed weights or their gradient, then the plain gradient of weights and bias, then
  // oneDNN's scratchpad.
  char* Packed(const KernelArgs& args) const { return static_cast<char*>(args.scratch); }
  float* PlainGradient(const KernelArgs& args) const {
    return reinterpret_cast<float*>(Packed(args) + packed_bytes_);
  }
  char* Scratchpad(const KernelArgs& args) const {
    return Packed(args) + packed_bytes_ + plain_bytes_;
  }
  void NeedScratch(const dnnl::memory::desc& packed, const dnnl::memory::desc& scratchpad) {
    packed_bytes_ = std::max(packed_bytes_, AlignUp(packed.get_size()));
    scratchpad_bytes_ = std::max(scratchpad_bytes_, AlignUp(scratchpad.get_size()));
  }

  const Device device_;
  const bool relu_;
  const bool has_bias_;
  const int64_t weights_;
  const int64_t outputs_;
  const int64_t output_floats_;
  size_t packed_bytes_ = 0;
  size_t plain_bytes_;
  size_t scratchpad_bytes_ = 0;
  OneDnnOp forward_, backward_weights_, backward_data_;
  OneDnnOp pack_forward_, pack_backward_, unpack_gradient_;
};

Descs DescsOf(const KernelRequest& request) {
  const auto& layer = static_cast<const Convolution&>(*request.layer);
  const int64_t groups = layer.groups();
  const HeightWidth &kernel = layer.kernel(), &dilation = layer.dilation();
  const int64_t outputs = layer.outputs() / groups, channels = layer.channels() / groups;
  const Shape one{outputs, channels, kernel.height, kernel.width};
  const Shape w = groups == 1 ? one : one.Prepend(groups);  // the same memory
  return {.x = OneDnnDesc(request.inputs[0], Format::kChannelsLast),
          .y = OneDnnDesc(request.outputs[0], Format::kChannelsLast),
          .w = OneDnnDesc(w, Format::kPlain),
          .any_w = OneDnnAnyDesc(w),
          .bias = OneDnnDesc({layer.outputs()}, Format::kPlain),
          .strides = {layer.stride().height, layer.stride().width},
          .dilations = {dilation.height - 1, dilation.width - 1},  // pixels between two weights
          .pads = {layer.pad().height, layer.pad().width},
          .has_bias = layer.has_bias()};
}

ConvolutionOneDnn::ConvolutionOneDnn(const KernelRequest& request)
    : device_(request.device),
      relu_(request.fused_relu),
      has_bias_(static_cast<const Convolution&>(*request.layer).has_bias()),
      weights_(request.layer->Params()[0].shape.count()),
      outputs_(request.outputs[0][1]),
      output_floats_(request.outputs[0].count()),
      plain_bytes_(AlignUp((weights_ + outputs_) * sizeof(float))) {
  const Descs d = DescsOf(request);
  const auto forward = ForwardDesc(d, relu_ && OneDnnTakesRelu());
  const auto weights = WeightsDesc(d, forward);
  const auto data = DataDesc(d, forward);
  NeedScratch(forward.weights_desc(), forward.scratchpad_desc());
  NeedScratch(weights.diff_weights_desc(), weights.scratchpad_desc());
  NeedScratch(data.weights_desc(), data.scratchpad_desc());
  pack_forward_ = ReorderOp(d.w, forward.weights_desc());
  pack_backward_ = ReorderOp(d.w, data.weights_desc());
  unpack_gradient_ = ReorderOp(weights.diff_weights_desc(), d.w);

  std::vector<OneDnnOp::Argument> arguments = {{DNNL_ARG_SRC, d.x},
                                               {DNNL_ARG_WEIGHTS, forward.weights_desc()},
                                               {DNNL_ARG_DST, d.y},
                                               {DNNL_ARG_SCRATCHPAD, forward.scratchpad_desc()}};
  if (has_bias_) arguments.push_back({DNNL_ARG_BIAS, d.bias});
  forward_ = OneDnnOp(convolution_forward(forward), arguments);

  arguments = {{DNNL_ARG_SRC, d.x},
               {DNNL_ARG_DIFF_DST, d.y},
               {DNNL_ARG_DIFF_WEIGHTS, weights.diff_weights_desc()},
               {DNNL_ARG_SCRATCHPAD, weights.scratchpad_desc()}};
  if (has_bias_) arguments.push_back({DNNL_ARG_DIFF_BIAS, d.bias});
  backward_weights_ = OneDnnOp(convolution_backward_weights(weights), arguments);

  arguments = {{DNNL_ARG_DIFF_DST, d.y},
               {DNNL_ARG_WEIGHTS, data.weights_desc()},
               {DNNL_ARG_DIFF_SRC, d.x},
               {DNNL_ARG_SCRATCHPAD, data.scratchpad_desc()}};
  backward_data_ = OneDnnOp(convolution_backward_data(data), arguments);
}

void ConvolutionOneDnn::Forward(const KernelArgs& args) {
  pack_forward_.Run({args.params[0].data, Packed(args)});
  const void* const x = args.inputs[0].data;
  const void* const y = args.outputs[0].data;
  if (has_bias_) {
    forward_.Run({x, Packed(args), y, Scratchpad(args), args.params[1].data});
  } else {
    forward_.Run({x, Packed(args), y, Scratchpad(args)});
  }
  if (relu_ && !OneDnnTakesRelu()) Rectify(args.outputs[0].f32());
}

// Applies max(0, .) to y; NaN stays NaN.
void ConvolutionOneDnn::Rectify(float* y) const {
  ForEachSlice(device_.threads, output_floats_, [&](Range r) {
    for (int64_t i = r.begin; i < r.end; ++i) y[i] = y[i] < 0 ? 0 : y[i];
  });
}

void ConvolutionOneDnn::Backward(const KernelArgs& args) {
  if (relu_) {
    MaskGradient(device_.threads, output_floats_, args.outputs[0].f32(),
                 args.output_gradients[0].f32());
  }
  BackwardWeights(args);
  if (args.input_gradients[0].data != nullptr) BackwardData(args);
}

void ConvolutionOneDnn::BackwardWeights(const KernelArgs& args) {
  float* const plain = args.accumulate ? PlainGradient(args) : args.param_gradients[0].f32();
  const void* const x = args.inputs[0].data;
  const void* const dy = args.output_gradients[0].data;
  if (has_bias_) {
    float* const bias =
        args.accumulate ? PlainGradient(args) + weights_ : args.param_gradients[1].f32();
    backward_weights_.Run({x, dy, Packed(args), Scratchpad(args), bias});
  } else {
    backward_weights_.Run({x, dy, Packed(args), Scratchpad(args)});
  }
  unpack_gradient_.Run({Packed(args), plain});
  if (!args.accumulate) return;
  float* const dw = args.param_gradients[0].f32();
  for (int64_t i = 0; i < weights_; ++i) dw[i] += plain[i];
  if (!has_bias_) return;
  float* const db = args.param_gradients[1].f32();
  for (int64_t i = 0; i < outputs_; ++i) db[i] += plain[weights_ + i];
}

void ConvolutionOneDnn::BackwardData(const KernelArgs& args) {
  pack_backward_.Run({args.params[0].data, Packed(args)});
  backward_data_.Run({args.output_gradients[0].data, Packed(args), args.input_gradients[0].data,
                      Scratchpad(args)});
}

std::optional<KernelOffer> OfferConvolutionOneDnn(const KernelRequest& request) {
  KernelOffer offer;
  offer.inputs = {request.inputs[0][1] == 1 ? Format::kPlain : Format::kChannelsLast};
  offer.outputs = {Format::kChannelsLast};
  return offer;
}

std::unique_ptr<Kernel> MakeConvolutionOneDnn(const KernelRequest& request, const KernelOffer&) {
  return std::make_unique<ConvolutionOneDnn>(request);
}

DTRAIN_KERNEL("convolution", DeviceKind::kCpu, "onednn", OfferConvolutionOneDnn,
              MakeConvolutionOneDnn);

}  // namespace
}  // namespace dtrain
