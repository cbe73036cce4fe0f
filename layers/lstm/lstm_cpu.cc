// Implements the LSTM on the CPU under the name "packed".
#include "framework/kernels/cpu/recurrent_kernel.h"
#include "layers/lstm/lstm_loops.h"

namespace dtrain {
namespace {

class LstmCell : public RecurrentCell {
 public:
  int64_t row_width(int64_t hidden) const override { return kLstmRow * hidden; }

  std::vector<StatePart> StateParts(int64_t) const override { return {{0, 0, 4}}; }

  void Forward(Isa isa, const CellStep& s, float* state) const override {
    DTRAIN_ISA_SELECT(isa, LstmForward)(s.row, s.from_state, CellOf(s), s.hidden, state);
  }

  void Backward(Isa isa, const CellStep& s, float* dstate, float* dcarry) const override {
    DTRAIN_ISA_SELECT(isa, LstmBackward)(s.row, CellOf(s), s.hidden, dstate, dcarry);
  }

 private:
  static const float* CellOf(const CellStep& s) { return s.row_before + 4 * s.hidden; }
};

std::unique_ptr<Kernel> MakeLstmPacked(const KernelRequest& request, const KernelOffer&) {
  return MakeRecurrent(request, std::make_unique<LstmCell>());
}

DTRAIN_KERNEL("lstm", DeviceKind::kCpu, "packed", OfferPlain, MakeLstmPacked);

}  // namespace
}  // namespace dtrain
