// Implements the GRU on the GPU under the name "cublas".
#include "framework/kernels/cuda/recurrent.h"

namespace dtrain {
namespace {

std::unique_ptr<Kernel> MakeGruCuda(const KernelRequest& request, const KernelOffer&) {
  return MakeRecurrentCuda<GruCell>(request);
}

DTRAIN_KERNEL("gru", DeviceKind::kCuda, "cublas", OfferPlain, MakeGruCuda);

}  // namespace
}  // namespace dtrain
