// Implements GELU on the GPU under the name "direct".
#include <cmath>

#include "framework/kernels/cuda/elementwise.h"
#include "layers/gelu/gelu.h"
#include "layers/gelu/gelu_loops.h"

namespace dtrain {
namespace {

struct ExactGelu {
  static constexpr bool kKeepsInput = true;
  static DT_DEVICE float Distribution(float x) { return 0.5f * erfcf(-0.707106781f * x); }
  static DT_DEVICE float Forward(float x) { return x * Distribution(x); }
  static DT_DEVICE float Backward(float x, float dy) {
    return dy * (Distribution(x) + x * 0.398942280f * expf(-0.5f * x * x));
  }
};

struct TanhGelu {
  static constexpr bool kKeepsInput = true;
  static constexpr auto kLinear = static_cast<float>(kGeluLinear);
  static constexpr auto kCubic = static_cast<float>(kGeluCubic);
  static DT_DEVICE float Share(float x) { return 1 / (1 + expf(-x * (kLinear + kCubic * x * x))); }
  static DT_DEVICE float Forward(float x) { return x * Share(x); }
  static DT_DEVICE float Backward(float x, float dy) {
    const float s = Share(x);
    return dy * (s + x * s * (1 - s) * (kLinear + 3 * kCubic * x * x));
  }
};

std::unique_ptr<Kernel> MakeGeluCuda(const KernelRequest& request, const KernelOffer&) {
  if (static_cast<const Gelu*>(request.layer)->by_tanh()) {
    return std::make_unique<ElementwiseCuda<TanhGelu>>(request);
  }
  return std::make_unique<ElementwiseCuda<ExactGelu>>(request);
}

DTRAIN_KERNEL("gelu", DeviceKind::kCuda, "direct", OfferElementwise, MakeGeluCuda);

}  // namespace
}  // namespace dtrain
