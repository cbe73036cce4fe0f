// Implements pooling on the GPU under the name "direct", for channels_last images.  One thread computes each output, in
// the backward pass each input's gradient, so the order of additions is fixed. cuDNN's pooling is not used: for a
// maximum it requires x and y to be kept, whereas a byte per window is enough.
#include "framework/kernels/cuda/element_types.h"
#include "framework/kernels/cuda/images.h"
#include "framework/kernels/cuda/loops.h"
#include "framework/kernels/cuda/pooling_map.h"
#include "framework/nn/kernel.h"
#include "layers/pooling/pooling.h"

namespace dtrain {
namespace {

PoolingMap MapOf(const KernelRequest& request, bool plain_output) {
  const PoolingWindows& windows = static_cast<const Pooling&>(*request.layer).windows();
  return {windows, request.inputs[0][1], plain_output};
}

template <class In, class Out>  // the types of the images
class PoolingCuda : public Kernel {
 public:
  PoolingCuda(const KernelRequest& request, const KernelOffer& offer)
      : queue_(QueueOf(request.device)),
        map_(MapOf(request, offer.outputs[0].format == Format::kPlain)),
        is_max_(static_cast<const Pooling&>(*request.layer).is_max()),
        relu_(request.fused_relu),
        training_(request.mode == Mode::kTrain),
        inputs_(request.inputs[0].count()),
        outputs_(request.outputs[0].count()) {}

  // Max pooling saves the index of the largest pixel in each window.
  KernelNeeds Needs() const override {
    KernelNeeds needs;
    if (is_max_ && training_) {
      needs.saved_bytes = static_cast<size_t>(outputs_) * map_.windows.PlaceBytes();
    }
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    if (!is_max_) return ForwardMean(args);
    map_.windows.PlacesFitBytes() ? ForwardLargest<uint8_t>(args) : ForwardLargest<int32_t>(args);
  }

  void Backward(const KernelArgs& args) override {
    if (args.input_gradients[0].data == nullptr) return;
    map_.windows.PlacesFitBytes() ? BackwardBy<uint8_t>(args) : BackwardBy<int32_t>(args);
  }

  void ForwardMean(const KernelArgs& args) {
    const PoolingMap map = map_;
    const In* const x = args.inputs[0].as<const In>();
    Out* const y = args.outputs[0].as<Out>();
    ForEach(queue_, {"average pooling", {Reads(x, inputs_), Writes(y, outputs_)}}, outputs_,
            [=] DT_DEVICE(int64_t i) { y[i] = static_cast<Out>(map.Mean(x, i)); });
  }

  template <class Winner>
  void ForwardLargest(const KernelArgs& args) {
    const PoolingMap map = map_;
    const In* const x = args.inputs[0].as<const In>();
    Out* const y = args.outputs[0].as<Out>();
    Winner* const winners = training_ ? static_cast<Winner*>(args.saved) : nullptr;
    const bool relu = relu_;
    ForEach(queue_,
            {"max pooling", {Reads(x, inputs_), Writes(y, outputs_), Writes(winners, outputs_)}},
            outputs_, [=] DT_DEVICE(int64_t i) {
              int64_t winner;
              const auto value_at = [=](int64_t at) { return static_cast<float>(x[at]); };
              const float largest = map.Largest(value_at, i, &winner);
              const bool closed = relu && largest <= 0;
              y[i] = static_cast<Out>(closed ? 0 : largest);
              if (winners != nullptr) winners[i] = static_cast<Winner>(closed ? -1 : winner);
            });
  }

  template <class Winner>
  void BackwardBy(const KernelArgs& args) {
    const PoolingMap map = map_;
    const Out* const dy = args.output_gradients[0].as<const Out>();
    const Winner* const winners = is_max_ ? static_cast<const Winner*>(args.saved) : nullptr;
    In* const dx = args.input_gradients[0].as<In>();
    ForEach(
        queue_,
        {"pooling gradient", {Reads(dy, outputs_), Reads(winners, outputs_), Writes(dx, inputs_)}},
        inputs_,
        [=] DT_DEVICE(int64_t i) { dx[i] = static_cast<In>(map.Gradient(dy, winners, i)); });
  }

 private:
  CudaQueue& queue_;
  const PoolingMap map_;
  const bool is_max_;
  const bool relu_;
  const bool training_;
  const int64_t inputs_, outputs_;
};

std::optional<KernelOffer> OfferPoolingCuda(const KernelRequest& request) {
  if (request.fused_relu && request.layer->max_windows() == nullptr) return std::nullopt;
  KernelOffer offer = OfferImages(request);
  // The readers of a single pixel take fp32 as well.
  const Shape& y = request.outputs[0];
  const bool pixel = y.rank() == 4 && y.CountFrom(2) == 1;
  if (request.read_as_plain || pixel) offer.outputs = {Form()};
  return offer;
}

std::unique_ptr<Kernel> MakePoolingCuda(const KernelRequest& request, const KernelOffer& offer) {
  return WithElementType(offer.inputs[0].dtype, [&]<class In>() -> std::unique_ptr<Kernel> {
    if (offer.outputs[0].dtype == DType::kF32) {
      return std::make_unique<PoolingCuda<In, float>>(request, offer);
    }
    return std::make_unique<PoolingCuda<In, In>>(request, offer);
  });
}

DTRAIN_KERNEL("pooling", DeviceKind::kCuda, "direct", OfferPoolingCuda, MakePoolingCuda);

}  // namespace
}  // namespace dtrain
