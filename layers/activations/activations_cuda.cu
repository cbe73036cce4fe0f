// Implements the activations on the GPU under the name "direct".  The kernel runs in whatever form the input has, and in
// place where the net allows it.
#include <cmath>

#include "framework/kernels/cuda/channel_loops.h"
#include "framework/kernels/cuda/element_types.h"
#include "framework/nn/kernel.h"
#include "layers/activations/activations.h"

namespace dtrain {
namespace {

struct Rectify {
  DT_DEVICE float Forward(float x) const { return x < 0 ? 0 : x; }  // keeps a NaN
  DT_DEVICE float Backward(float y, float dy) const { return y > 0 ? dy : 0; }
};

struct Leak {
  float slope = 0;
  DT_DEVICE float Forward(float x) const { return x > 0 ? x : slope * x; }  // keeps a NaN
  DT_DEVICE float Backward(float y, float dy) const { return y > 0 ? dy : slope * dy; }
};

struct Logistic {
  DT_DEVICE float Forward(float x) const { return 1 / (1 + expf(-x)); }
  DT_DEVICE float Backward(float y, float dy) const { return dy * y * (1 - y); }
};

struct HyperbolicTangent {
  DT_DEVICE float Forward(float x) const { return tanhf(x); }
  DT_DEVICE float Backward(float y, float dy) const { return dy * (1 - y * y); }
};

struct Swish {
  DT_DEVICE float Forward(float x) const { return x / (1 + expf(-x)); }
  DT_DEVICE float Backward(float x, float dy) const {
    const float s = 1 / (1 + expf(-x));
    return dy * s * (1 + x * (1 - s));
  }
};

struct ExactGelu {
  static DT_DEVICE float Distribution(float x) { return 0.5f * erfcf(-0.707106781f * x); }
  DT_DEVICE float Forward(float x) const { return x * Distribution(x); }
  DT_DEVICE float Backward(float x, float dy) const {
    return dy * (Distribution(x) + x * 0.398942280f * expf(-0.5f * x * x));
  }
};

struct TanhGelu {
  static constexpr auto kLinear = static_cast<float>(kGeluLinear);
  static constexpr auto kCubic = static_cast<float>(kGeluCubic);
  static DT_DEVICE float Share(float x) { return 1 / (1 + expf(-x * (kLinear + kCubic * x * x))); }
  DT_DEVICE float Forward(float x) const { return x * Share(x); }
  DT_DEVICE float Backward(float x, float dy) const {
    const float s = Share(x);
    return dy * (s + x * s * (1 - s) * (kLinear + 3 * kCubic * x * x));
  }
};

template <class Function>
struct ForwardOf : AnyChannel {
  Function function;
  DT_DEVICE float operator()(const Channel&, const float* x) const {
    return function.Forward(x[0]);
  }
};

template <class Function>
struct BackwardOf : AnyChannel {
  Function function;
  DT_DEVICE float operator()(const Channel&, const float* x) const {
    return function.Backward(x[0], x[1]);
  }
};

template <class T, class Function>
class ActivationCuda : public Kernel {
 public:
  explicit ActivationCuda(const KernelRequest& request, const Function& function = {})
      : queue_(QueueOf(request.device)),
        function_(function),
        count_(request.inputs[0].count()),
        keeps_input_(static_cast<const ActivationLayer*>(request.layer)->keeps_input()),
        training_(request.mode == Mode::kTrain) {}

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    needs.backward_reads_inputs = keeps_input_;
    needs.backward_reads_outputs = !keeps_input_;
    needs.forward_in_place = !keeps_input_ || !training_;
    needs.backward_in_place = true;
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    const T* const x = args.inputs[0].as<const T>();
    T* const y = args.outputs[0].as<T>();
    MapElements(queue_, {"activation", {Reads(x, count_), Writes(y, count_)}}, count_,
                ForwardOf<Function>{{}, function_}, Operands<T, 1>{x}, y);
  }

  void Backward(const KernelArgs& args) override {
    const T* const kept = (keeps_input_ ? args.inputs : args.outputs)[0].as<const T>();
    const T* const dy = args.output_gradients[0].as<const T>();
    T* const dx = args.input_gradients[0].as<T>();
    if (dx == nullptr) return;
    MapElements(
        queue_,
        {"activation gradient", {Reads(kept, count_), Reads(dy, count_), Writes(dx, count_)}},
        count_, BackwardOf<Function>{{}, function_}, Operands<T, 2>{kept, dy}, dx);
  }

 private:
  CudaQueue& queue_;
  const Function function_;
  const int64_t count_;
  const bool keeps_input_, training_;
};

template <class T>
std::unique_ptr<Kernel> MakeActivationOf(const KernelRequest& request) {
  const auto& function = static_cast<const ActivationLayer*>(request.layer)->function();
  switch (function.kind) {
    case ActivationKind::kRelu:
      return std::make_unique<ActivationCuda<T, Rectify>>(request);
    case ActivationKind::kLeakyRelu:
      return std::make_unique<ActivationCuda<T, Leak>>(request, Leak{function.slope});
    case ActivationKind::kSigmoid:
      return std::make_unique<ActivationCuda<T, Logistic>>(request);
    case ActivationKind::kTanh:
      return std::make_unique<ActivationCuda<T, HyperbolicTangent>>(request);
    case ActivationKind::kSilu:
      return std::make_unique<ActivationCuda<T, Swish>>(request);
    case ActivationKind::kGelu:
      return std::make_unique<ActivationCuda<T, ExactGelu>>(request);
    case ActivationKind::kTanhGelu:
      return std::make_unique<ActivationCuda<T, TanhGelu>>(request);
  }
  return nullptr;
}

std::unique_ptr<Kernel> MakeActivationCuda(const KernelRequest& request, const KernelOffer& offer) {
  return WithElementType(offer.inputs[0].dtype,
                         [&]<class T>() { return MakeActivationOf<T>(request); });
}

[[maybe_unused]] const bool activations_registered = [] {
  for (const char* type : kActivations) {
    KernelRegistry::Add(type, DeviceKind::kCuda, {"direct", OfferElementwise, MakeActivationCuda});
  }
  return true;
}();

}  // namespace
}  // namespace dtrain
