// Implements pooling on the CPU under the names "batch_blocked" and "channels_last", for an input that is already in
// that format and square windows of one size, stride and pad.  For max pooling, an index in the window must fit in a
// byte.
#include "framework/device/cpu/parallel.h"
#include "framework/nn/kernel.h"
#include "layers/pooling/blocked_pooling.h"
#include "layers/pooling/pooling.h"

namespace dtrain {
namespace {

class PoolingBlocked : public Kernel {
 public:
  PoolingBlocked(const KernelRequest& request, Format format)
      : device_(request.device),
        is_max_(static_cast<const Pooling&>(*request.layer).is_max()),
        relu_(request.fused_relu),
        training_(request.mode == Mode::kTrain),
        plane_(PlaneOf(request, format)),
        planes_(StoredCount(request.inputs[0], format) / InputFloats()) {}

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    if (is_max_ && training_) needs.saved_bytes = planes_ * OutputFloats();
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    uint8_t* const winners = training_ ? static_cast<uint8_t*>(args.saved) : nullptr;
    ParallelFor(device_.threads, planes_, [&](int64_t i) {
      const float* const x = args.inputs[0].f32() + i * InputFloats();
      float* const y = args.outputs[0].f32() + i * OutputFloats();
      if (is_max_) {
        DTRAIN_ISA_SELECT(device_.isa, MaxPoolPlane)
        (plane_, x, relu_, y, winners == nullptr ? nullptr : winners + i * OutputFloats());
      } else {
        DTRAIN_ISA_SELECT(device_.isa, AveragePoolPlane)(plane_, x, y);
      }
    });
  }

  void Backward(const KernelArgs& args) override {
    if (args.input_gradients[0].data == nullptr) return;
    const uint8_t* const winners = static_cast<const uint8_t*>(args.saved);
    ParallelFor(device_.threads, planes_, [&](int64_t i) {
      const float* const dy = args.output_gradients[0].f32() + i * OutputFloats();
      float* const dx = args.input_gradients[0].f32() + i * InputFloats();
      if (is_max_) {
        DTRAIN_ISA_SELECT(device_.isa, MaxPoolPlaneBackward)
        (plane_, dy, winners + i * OutputFloats(), dx);
      } else {
        DTRAIN_ISA_SELECT(device_.isa, AveragePoolPlaneBackward)(plane_, dy, dx);
      }
    });
  }

 private:
  static PoolingPlane PlaneOf(const KernelRequest& request, Format format) {
    const auto& layer = static_cast<const Pooling&>(*request.layer);
    return {.height = request.inputs[0][2],
            .width = request.inputs[0][3],
            .out_height = request.outputs[0][2],
            .out_width = request.outputs[0][3],
            .kernel = layer.windows().rows.kernel,
            .stride = layer.windows().rows.stride,
            .pad = layer.windows().rows.pad,
            .lanes = format == Format::kChannelsLast ? request.inputs[0][1] : kBatchBlock};
  }
  int64_t InputFloats() const { return plane_.height * plane_.width * plane_.lanes; }
  int64_t OutputFloats() const { return plane_.out_height * plane_.out_width * plane_.lanes; }

  const Device device_;
  const bool is_max_;
  const bool relu_;
  const bool training_;
  const PoolingPlane plane_;
  const int64_t planes_;
};

std::optional<KernelOffer> OfferIn(const KernelRequest& request, Format format) {
  if (request.fused_relu && request.layer->max_windows() == nullptr) return std::nullopt;
  const auto& layer = static_cast<const Pooling&>(*request.layer);
  const PoolingAxis &rows = layer.windows().rows, &columns = layer.windows().columns;
  if (rows.adaptive || columns.adaptive || rows.kernel != columns.kernel ||
      rows.stride != columns.stride || rows.pad != columns.pad) {
    return std::nullopt;
  }
  if (layer.is_max() && !layer.windows().PlacesFitBytes()) return std::nullopt;
  KernelOffer offer;
  offer.inputs = {format};
  offer.outputs = {format};
  offer.preference = request.available[0] == format ? 10 : -10;
  return offer;
}

std::optional<KernelOffer> OfferPoolingBlocked(const KernelRequest& request) {
  return OfferIn(request, Format::kBatchBlocked);
}

std::unique_ptr<Kernel> MakePoolingBlocked(const KernelRequest& request, const KernelOffer&) {
  return std::make_unique<PoolingBlocked>(request, Format::kBatchBlocked);
}

DTRAIN_KERNEL("pooling", DeviceKind::kCpu, "batch_blocked", OfferPoolingBlocked,
              MakePoolingBlocked);

std::optional<KernelOffer> OfferPoolingChannelsLast(const KernelRequest& request) {
  if (request.inputs[0][1] % kBatchBlock != 0) return std::nullopt;
  return OfferIn(request, Format::kChannelsLast);
}

std::unique_ptr<Kernel> MakePoolingChannelsLast(const KernelRequest& request, const KernelOffer&) {
  return std::make_unique<PoolingBlocked>(request, Format::kChannelsLast);
}

DTRAIN_KERNEL("pooling", DeviceKind::kCpu, "channels_last", OfferPoolingChannelsLast,
              MakePoolingChannelsLast);

}  // namespace
}  // namespace dtrain
