// Implements the LSTM's cell in plain loops, as the reference for the tests.
#include <cmath>

#include "framework/nn/recurrent_ref.h"

namespace dtrain {
namespace {

class LstmReference : public RecurrentReference {
 protected:
  void Step(RefCellStep& s) const override {
    const size_t H = s.h0.size();
    s.c.resize(H);
    s.h.resize(H);
    for (size_t j = 0; j < H; ++j) {
      const auto [i, f, g, o] = Gates(s, j);
      s.c[j] = f * s.c0[j] + i * g;
      s.h[j] = o * std::tanh(s.c[j]);
    }
  }

  RefCellGradients StepBackward(const RefCellStep& s, const std::vector<double>& dh,
                                const std::vector<double>& dc_behind) const override {
    const size_t H = s.h0.size();
    RefCellGradients gradients{
        std::vector<double>(4 * H), {}, std::vector<double>(H), std::vector<double>(H)};
    for (size_t j = 0; j < H; ++j) {
      const auto [i, f, g, o] = Gates(s, j);
      const double tc = std::tanh(s.c[j]);
      const double dc = dc_behind[j] + dh[j] * o * (1 - tc * tc);
      gradients.from_x[j] = dc * g * i * (1 - i);
      gradients.from_x[H + j] = dc * s.c0[j] * f * (1 - f);
      gradients.from_x[2 * H + j] = dc * i * (1 - g * g);
      gradients.from_x[3 * H + j] = dh[j] * tc * o * (1 - o);
      gradients.c0[j] = dc * f;
    }
    gradients.from_h = gradients.from_x;
    return gradients;
  }

 private:
  struct Gate {
    double i, f, g, o;
  };
  static Gate Gates(const RefCellStep& s, size_t j) {
    const size_t H = s.h0.size();
    const auto sum = [&](size_t gate) { return s.from_x[gate * H + j] + s.from_h[gate * H + j]; };
    return {Sigmoid(sum(0)), Sigmoid(sum(1)), std::tanh(sum(2)), Sigmoid(sum(3))};
  }
};

DTRAIN_LAYER_CASES("lstm", LstmReference, RecurrentCases());

}  // namespace
}  // namespace dtrain
