// Implements the mean squared error on the GPU under the name "direct".
#include "framework/kernels/cuda/element_loss.h"
#include "layers/mean_squared_error/mean_squared_error.h"

namespace dtrain {
namespace {

std::unique_ptr<Kernel> MakeMeanSquaredErrorCuda(const KernelRequest& request, const KernelOffer&) {
  return std::make_unique<ElementLossCuda<SquaredErrorTerm>>(request);
}

DTRAIN_KERNEL("mean_squared_error", DeviceKind::kCuda, "direct", OfferPlain,
              MakeMeanSquaredErrorCuda);

}  // namespace
}  // namespace dtrain
