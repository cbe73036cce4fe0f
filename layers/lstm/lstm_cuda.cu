// Implements the LSTM on the GPU under the name "cublas".
#include "framework/kernels/cuda/recurrent.h"

namespace dtrain {
namespace {

// The gates are i, f, g, o (lstm.cc); a row keeps them and the cell c.
struct LstmCell {
  static constexpr int kGates = 4, kRow = 5, kCarry = 4;
  static constexpr int kSameGates = 4;

  static DT_DEVICE float Forward(const float* x, const float* h, const CellPast& past, float* row) {
    const float i = Sigmoid(x[0] + h[0]), f = Sigmoid(x[1] + h[1]);
    const float g = tanhf(x[2] + h[2]), o = Sigmoid(x[3] + h[3]);
    const float c = f * past.carry + i * g;
    row[0] = i, row[1] = f, row[2] = g, row[3] = o, row[4] = c;
    return o * tanhf(c);
  }

  // All of the gradient by h0 passes through W_h, so `state` becomes 0.
  static DT_DEVICE void Backward(const float* row, const CellPast& past, float& state, float& carry,
                                 float* dx, float*) {
    const float i = row[0], f = row[1], g = row[2], o = row[3];
    const float tc = tanhf(row[4]);
    const float dc = carry + state * o * (1 - tc * tc);
    dx[0] = dc * g * i * (1 - i);
    dx[1] = dc * past.carry * f * (1 - f);
    dx[2] = dc * i * (1 - g * g);
    dx[3] = state * tc * o * (1 - o);
    carry = dc * f;
    state = 0;
  }
};

std::unique_ptr<Kernel> MakeLstmCuda(const KernelRequest& request, const KernelOffer&) {
  return MakeRecurrentCuda<LstmCell>(request);
}

DTRAIN_KERNEL("lstm", DeviceKind::kCuda, "cublas", OfferPlain, MakeLstmCuda);

}  // namespace
}  // namespace dtrain
