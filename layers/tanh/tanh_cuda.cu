// Implements tanh on the GPU under the name "direct".
#include <cmath>

#include "framework/kernels/cuda/elementwise.h"

namespace dtrain {
namespace {

struct Tanh {
  static constexpr bool kKeepsInput = false;
  static DT_DEVICE float Forward(float x) { return tanhf(x); }
  static DT_DEVICE float Backward(float y, float dy) { return dy * (1 - y * y); }
};

std::unique_ptr<Kernel> MakeTanhCuda(const KernelRequest& request, const KernelOffer&) {
  return std::make_unique<ElementwiseCuda<Tanh>>(request);
}

DTRAIN_KERNEL("tanh", DeviceKind::kCuda, "direct", OfferElementwise, MakeTanhCuda);

}  // namespace
}  // namespace dtrain
