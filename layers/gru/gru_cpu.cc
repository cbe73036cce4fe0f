// Implements the GRU on the CPU under the name "packed".
#include "framework/kernels/cpu/loops.h"
#include "framework/kernels/cpu/recurrent_kernel.h"

namespace dtrain {
namespace {

class GruCell : public RecurrentCell {
 public:
  int64_t row_width(int64_t hidden) const override { return kGruRow * hidden; }

  // The gradients of r and z by W_i x and by W_h h0 are equal; n's gradient by W_h h0 is the row's last part.
  std::vector<StatePart> StateParts(int64_t hidden) const override {
    return {{0, 0, 2}, {3 * hidden, 2, 1}};
  }

  void Forward(Isa isa, const CellStep& s, float* state) const override {
    DTRAIN_ISA_SELECT(isa, GruForward)(s.row, s.from_state, s.state_before, s.hidden, state);
  }

  void Backward(Isa isa, const CellStep& s, float* dstate, float*) const override {
    DTRAIN_ISA_SELECT(isa, GruBackward)(s.row, s.state_before, s.hidden, dstate);
  }
};

std::unique_ptr<Kernel> MakeGruPacked(const KernelRequest& request, const KernelOffer&) {
  return MakeRecurrent(request, std::make_unique<GruCell>());
}

DTRAIN_KERNEL("gru", DeviceKind::kCpu, "packed", OfferPlain, MakeGruPacked);

}  // namespace
}  // namespace dtrain
