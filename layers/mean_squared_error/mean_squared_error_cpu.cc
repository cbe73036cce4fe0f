// Implements the mean squared error on the CPU under the name "direct".
#include "framework/kernels/cpu/element_loss.h"
#include "layers/mean_squared_error/mean_squared_error.h"

namespace dtrain {
namespace {

std::unique_ptr<Kernel> MakeMeanSquaredErrorDirect(const KernelRequest& request,
                                                   const KernelOffer&) {
  return std::make_unique<ElementLossCpu<SquaredErrorTerm>>(request);
}

DTRAIN_KERNEL("mean_squared_error", DeviceKind::kCpu, "direct", OfferPlain,
              MakeMeanSquaredErrorDirect);

}  // namespace
}  // namespace dtrain
