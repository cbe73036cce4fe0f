// Implements SiLU on the GPU under the name "direct".
#include <cmath>

#include "framework/kernels/cuda/elementwise.h"

namespace dtrain {
namespace {

struct Swish {
  static constexpr bool kKeepsInput = true;
  static DT_DEVICE float Forward(float x) { return x / (1 + expf(-x)); }
  static DT_DEVICE float Backward(float x, float dy) {
    const float s = 1 / (1 + expf(-x));
    return dy * s * (1 + x * (1 - s));
  }
};

std::unique_ptr<Kernel> MakeSiluCuda(const KernelRequest& request, const KernelOffer&) {
  return std::make_unique<ElementwiseCuda<Swish>>(request);
}

DTRAIN_KERNEL("silu", DeviceKind::kCuda, "direct", OfferElementwise, MakeSiluCuda);

}  // namespace
}  // namespace dtrain
