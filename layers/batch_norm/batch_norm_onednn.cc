// Batch normalisation on the CPU, implementation "onednn": plain or channels last, with a ReLU
// fused into both passes.
//
// Kept from Forward to Backward: mean [C] | variance [C] | oneDNN's mask of the open ReLUs.
// Scratch: weight and bias [2, C] | their gradients [2, C] | oneDNN's own.
#include <algorithm>

#include "framework/core/check.h"
#include "framework/core/error.h"
#include "framework/device/cpu/onednn.h"
#include "framework/nn/kernel.h"
#include "layers/batch_norm/batch_norm.h"

namespace dtrain {
namespace {

using dnnl::batch_normalization_backward;
using dnnl::batch_normalization_forward;
using dnnl::normalization_flags;

size_t AlignUp(size_t bytes) { return (bytes + 63) / 64 * 64; }

dnnl::primitive_attr UserScratchpad() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

// [N, C] is the same memory as an image of one pixel with its channels last.
dnnl::memory::desc ImageDesc(const Shape& shape, Format format) {
  if (shape.rank() == 4) return OneDnnDesc(shape, format);
  return OneDnnDesc({shape[0], shape[1], 1, 1}, Format::kChannelsLast);
}

class BatchNormOneDnn : public Kernel {
 public:
  BatchNormOneDnn(const KernelRequest& request, const KernelOffer& offer)
      : training_(request.mode == Mode::kTrain),
        relu_(request.fused_relu),
        channels_(request.inputs[0][1]),
        count_(request.inputs[0].count() / channels_),
        momentum_(static_cast<const BatchNorm&>(*request.layer).momentum()) {
    const auto eps = static_cast<float>(static_cast<const BatchNorm&>(*request.layer).eps());
    const dnnl::memory::desc image = ImageDesc(request.inputs[0], offer.inputs[0]);
    const batch_normalization_forward::primitive_desc forward(
        {training_ ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference, image,
         eps, Flags()},
        UserScratchpad(), OneDnnEngine());
    MakeForward(image, forward);
    if (training_) MakeBackward(image, eps, forward);
  }

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    needs.scratch_bytes = 2 * PackedBytes() + scratchpad_bytes_;
    if (training_) needs.saved_bytes = 2 * StatisticBytes() + workspace_bytes_;
    needs.backward_reads_inputs = true;
    needs.forward_in_place = !training_;
    needs.backward_in_place = true;
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    DT_CHECK(args.state.size() == 2 && args.state[0].data != nullptr);
    const void* const x = args.inputs[0].data;
    const void* const y = args.outputs[0].data;
    const float* const both = PackParams(args);
    if (!training_) {
      forward_.Run({x, y, args.state[0].data, args.state[1].data, both, Scratchpad(args)});
    } else if (!relu_) {
      forward_.Run({x, y, Mean(args), Variance(args), both, Scratchpad(args)});
    } else {
      forward_.Run({x, y, Mean(args), Variance(args), both, Scratchpad(args), Mask(args)});
    }
    if (training_) MoveRunningStatistics(args);
  }

  void Backward(const KernelArgs& args) override {
    const void* const dy = args.output_gradients[0].data;
    // oneDNN always computes it; where nobody wants it, it may overwrite dy.
    const void* dx = args.input_gradients[0].data;
    if (dx == nullptr) dx = dy;
    const void* const x = args.inputs[0].data;
    const float* const both = PackParams(args);
    float* const sums = static_cast<float*>(args.scratch) + PackedBytes() / sizeof(float);
    if (relu_) {
      backward_.Run(
          {x, dy, dx, Mean(args), Variance(args), both, sums, Scratchpad(args), Mask(args)});
    } else {
      backward_.Run({x, dy, dx, Mean(args), Variance(args), both, sums, Scratchpad(args)});
    }
    StoreGradients(args, sums);
  }

 private:
  normalization_flags Flags() const {
    normalization_flags flags = normalization_flags::use_scale_shift;
    if (relu_) flags |= normalization_flags::fuse_norm_relu;
    if (!training_) flags |= normalization_flags::use_global_stats;
    return flags;
  }

  void MakeForward(const dnnl::memory::desc& image,
                   const batch_normalization_forward::primitive_desc& desc) {
    scratchpad_bytes_ = AlignUp(desc.scratchpad_desc().get_size());
    std::vector<OneDnnOp::Argument> arguments = {{DNNL_ARG_SRC, image},
                                                 {DNNL_ARG_DST, image},
                                                 {DNNL_ARG_MEAN, PerChannel()},
                                                 {DNNL_ARG_VARIANCE, PerChannel()},
                                                 {DNNL_ARG_SCALE_SHIFT, Packed()},
                                                 {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}};
    if (training_ && relu_) {
      workspace_bytes_ = AlignUp(desc.workspace_desc().get_size());
      arguments.push_back({DNNL_ARG_WORKSPACE, desc.workspace_desc()});
    }
    forward_ = OneDnnOp(batch_normalization_forward(desc), arguments);
  }

  void MakeBackward(const dnnl::memory::desc& image, float eps,
                    const batch_normalization_forward::primitive_desc& forward) {
    const batch_normalization_backward::primitive_desc desc(
        {dnnl::prop_kind::backward, image, image, eps, Flags()}, UserScratchpad(), OneDnnEngine(),
        forward);
    scratchpad_bytes_ = std::max(scratchpad_bytes_, AlignUp(desc.scratchpad_desc().get_size()));
    std::vector<OneDnnOp::Argument> arguments = {{DNNL_ARG_SRC, image},
                                                 {DNNL_ARG_DIFF_DST, image},
                                                 {DNNL_ARG_DIFF_SRC, image},
                                                 {DNNL_ARG_MEAN, PerChannel()},
                                                 {DNNL_ARG_VARIANCE, PerChannel()},
                                                 {DNNL_ARG_SCALE_SHIFT, Packed()},
                                                 {DNNL_ARG_DIFF_SCALE_SHIFT, Packed()},
                                                 {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}};
    if (relu_) arguments.push_back({DNNL_ARG_WORKSPACE, desc.workspace_desc()});
    backward_ = OneDnnOp(batch_normalization_backward(desc), arguments);
  }

  void MoveRunningStatistics(const KernelArgs& args) const {
    const auto keep = static_cast<float>(1 - momentum_);
    const auto take = static_cast<float>(momentum_);
    const auto take_variance = static_cast<float>(momentum_ * static_cast<double>(count_) /
                                                  static_cast<double>(count_ - 1));
    float* const running_mean = args.state[0].f32();
    float* const running_variance = args.state[1].f32();
    for (int64_t c = 0; c < channels_; ++c) {
      running_mean[c] = keep * running_mean[c] + take * Mean(args)[c];
      running_variance[c] = keep * running_variance[c] + take_variance * Variance(args)[c];
    }
  }

  // Weight and bias behind one another, as oneDNN takes them.
  const float* PackParams(const KernelArgs& args) const {
    float* const both = static_cast<float*>(args.scratch);
    std::copy_n(args.params[0].f32(), channels_, both);
    std::copy_n(args.params[1].f32(), channels_, both + channels_);
    return both;
  }

  void StoreGradients(const KernelArgs& args, const float* sums) const {
    for (const int param : {0, 1}) {
      const float* const sum = sums + param * channels_;
      float* const gradient = args.param_gradients[param].f32();
      for (int64_t c = 0; c < channels_; ++c) {
        gradient[c] = args.accumulate ? gradient[c] + sum[c] : sum[c];
      }
    }
  }

  dnnl::memory::desc PerChannel() const { return OneDnnDesc({channels_}, Format::kPlain); }
  dnnl::memory::desc Packed() const { return OneDnnDesc({2, channels_}, Format::kPlain); }
  size_t StatisticBytes() const { return AlignUp(channels_ * sizeof(float)); }
  size_t PackedBytes() const { return AlignUp(2 * channels_ * sizeof(float)); }
  float* Mean(const KernelArgs& args) const { return static_cast<float*>(args.saved); }
  float* Variance(const KernelArgs& args) const {
    return Mean(args) + StatisticBytes() / sizeof(float);
  }
  char* Mask(const KernelArgs& args) const {
    return static_cast<char*>(args.saved) + 2 * StatisticBytes();
  }
  char* Scratchpad(const KernelArgs& args) const {
    return static_cast<char*>(args.scratch) + 2 * PackedBytes();
  }

  const bool training_;
  const bool relu_;
  const int64_t channels_;
  const int64_t count_;  // values of one channel
  const double momentum_;
  size_t scratchpad_bytes_ = 0;
  size_t workspace_bytes_ = 0;
  OneDnnOp forward_, backward_;
};

std::optional<KernelOffer> OfferBatchNormOneDnn(const KernelRequest& request) {
  if (request.device.kind != DeviceKind::kCpu) return std::nullopt;
  const bool training = request.mode == Mode::kTrain;
  if (training && static_cast<const BatchNorm&>(*request.layer).sync()) return std::nullopt;
  const bool image = request.inputs[0].rank() == 4;
  const bool plain = !image || request.available[0] == Format::kPlain;
  KernelOffer offer;
  offer.inputs = {plain ? Format::kPlain : Format::kChannelsLast};
  offer.outputs = offer.inputs;
  return offer;
}

std::unique_ptr<Kernel> MakeBatchNormOneDnn(const KernelRequest& request,
                                            const KernelOffer& offer) {
  const Shape& x = request.inputs[0];
  if (request.mode == Mode::kTrain && x.count() == x[1]) {
    throw ShapeError("batch_norm cannot train on " + x.ToString() +
                         ": one value of each channel has no variance",
                     "use a larger batch");
  }
  return std::make_unique<BatchNormOneDnn>(request, offer);
}

DTRAIN_KERNEL("batch_norm", "onednn", OfferBatchNormOneDnn, MakeBatchNormOneDnn);

}  // namespace
}  // namespace dtrain
