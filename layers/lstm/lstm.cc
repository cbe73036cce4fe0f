// Long short-term memory (Hochreiter and Schmidhuber 1997, with Gers's forget gate; torch.nn.LSTM).
// For keys, shapes and parameters see framework/nn/recurrent_layer.h.  The gates are in the order i, f, g, o:
//   i, f, o = sigmoid(W_i x + b_i + W_h h0 + b_h)      g = tanh(W_i x + b_i + W_h h0 + b_h)
//   c = f c0 + i g      h = o tanh(c)
// The output is h; the cell c is internal.
#include "framework/nn/recurrent_layer.h"

namespace dtrain {
namespace {

class Lstm : public RecurrentLayer {
 public:
  Lstm() : RecurrentLayer(4) {}
};

DTRAIN_LAYER("lstm", Lstm, "long short-term memory over a sequence");

}  // namespace
}  // namespace dtrain
