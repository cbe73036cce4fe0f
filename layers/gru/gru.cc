// Gated recurrent unit (Cho et al. 2014; torch.nn.GRU).  For keys, shapes and parameters see
// framework/nn/recurrent_layer.h.  The gates are in the order r, z, n:
//   r = sigmoid(W_ir x + b_ir + W_hr h0 + b_hr)
//   z = sigmoid(W_iz x + b_iz + W_hz h0 + b_hz)
//   n = tanh(W_in x + b_in + r (W_hn h0 + b_hn))
//   h = (1 - z) n + z h0
#include "framework/nn/recurrent_layer.h"

namespace dtrain {
namespace {

class Gru : public RecurrentLayer {
 public:
  Gru() : RecurrentLayer(3) {}
};

DTRAIN_LAYER("gru", Gru, "gated recurrent units over a sequence");

}  // namespace
}  // namespace dtrain
