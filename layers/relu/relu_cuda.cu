// Implements ReLU on the GPU under the name "direct".
#include "framework/kernels/cuda/elementwise.h"

namespace dtrain {
namespace {

struct Rectify {
  static constexpr bool kKeepsInput = false;
  static DT_DEVICE float Forward(float x) { return x < 0 ? 0 : x; }  // keeps a NaN
  static DT_DEVICE float Backward(float y, float dy) { return y > 0 ? dy : 0; }
};

std::unique_ptr<Kernel> MakeReluCuda(const KernelRequest& request, const KernelOffer&) {
  return std::make_unique<ElementwiseCuda<Rectify>>(request);
}

DTRAIN_KERNEL("relu", DeviceKind::kCuda, "direct", OfferElementwise, MakeReluCuda);

}  // namespace
}  // namespace dtrain
