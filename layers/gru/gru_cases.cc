// Implements the GRU's cell in plain loops, as the reference for the tests.
#include <cmath>

#include "framework/nn/recurrent_ref.h"

namespace dtrain {
namespace {

class GruReference : public RecurrentReference {
 protected:
  void Step(RefCellStep& s) const override {
    const size_t H = s.h0.size();
    s.c = s.c0;
    s.h.resize(H);
    for (size_t i = 0; i < H; ++i) {
      const auto [r, z, n] = Gates(s, i);
      s.h[i] = (1 - z) * n + z * s.h0[i];
    }
  }

  RefCellGradients StepBackward(const RefCellStep& s, const std::vector<double>& dh,
                                const std::vector<double>& dc) const override {
    const size_t H = s.h0.size();
    RefCellGradients g{std::vector<double>(3 * H), std::vector<double>(3 * H),
                       std::vector<double>(H), dc};
    for (size_t i = 0; i < H; ++i) {
      const auto [r, z, n] = Gates(s, i);
      const double dn = dh[i] * (1 - z) * (1 - n * n);
      g.from_x[i] = g.from_h[i] = dn * s.from_h[2 * H + i] * r * (1 - r);
      g.from_x[H + i] = g.from_h[H + i] = dh[i] * (s.h0[i] - n) * z * (1 - z);
      g.from_x[2 * H + i] = dn;
      g.from_h[2 * H + i] = dn * r;
      g.h0[i] = dh[i] * z;
    }
    return g;
  }

 private:
  struct Gate {
    double r, z, n;
  };
  static Gate Gates(const RefCellStep& s, size_t i) {
    const size_t H = s.h0.size();
    const double r = Sigmoid(s.from_x[i] + s.from_h[i]);
    const double z = Sigmoid(s.from_x[H + i] + s.from_h[H + i]);
    return {r, z, std::tanh(s.from_x[2 * H + i] + r * s.from_h[2 * H + i])};
  }
};

DTRAIN_LAYER_CASES("gru", GruReference, RecurrentCases());

}  // namespace
}  // namespace dtrain
