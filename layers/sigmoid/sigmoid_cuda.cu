// Implements sigmoid on the GPU under the name "direct".
#include <cmath>

#include "framework/kernels/cuda/elementwise.h"

namespace dtrain {
namespace {

struct Logistic {
  static constexpr bool kKeepsInput = false;
  static DT_DEVICE float Forward(float x) { return 1 / (1 + expf(-x)); }
  static DT_DEVICE float Backward(float y, float dy) { return dy * y * (1 - y); }
};

std::unique_ptr<Kernel> MakeSigmoidCuda(const KernelRequest& request, const KernelOffer&) {
  return std::make_unique<ElementwiseCuda<Logistic>>(request);
}

DTRAIN_KERNEL("sigmoid", DeviceKind::kCuda, "direct", OfferElementwise, MakeSigmoidCuda);

}  // namespace
}  // namespace dtrain
