// Implements leaky ReLU on the GPU under the name "direct".
#include "framework/kernels/cuda/elementwise.h"
#include "layers/leaky_relu/leaky_relu.h"

namespace dtrain {
namespace {

struct Leak {
  static constexpr bool kKeepsInput = false;
  float slope = 0;
  DT_DEVICE float Forward(float x) const { return x > 0 ? x : slope * x; }  // keeps a NaN
  DT_DEVICE float Backward(float y, float dy) const { return y > 0 ? dy : slope * dy; }
};

std::unique_ptr<Kernel> MakeLeakyReluCuda(const KernelRequest& request, const KernelOffer&) {
  const float slope = static_cast<const LeakyRelu*>(request.layer)->slope();
  return std::make_unique<ElementwiseCuda<Leak>>(request, Leak{slope});
}

DTRAIN_KERNEL("leaky_relu", DeviceKind::kCuda, "direct", OfferElementwise, MakeLeakyReluCuda);

}  // namespace
}  // namespace dtrain
