// Defines the test cases of layer normalisation; the reference implementation is in row_norm_ref.h.
#include "framework/nn/row_norm_ref.h"

namespace dtrain {
namespace {

class LayerNormReference : public RowNormReference {};

// The tolerance is larger than the cost of one element suggests, because every result depends on sums over a row.
DTRAIN_LAYER_CASES("layer_norm", LayerNormReference,
                   {{"vector", "{}", {{5, 12}}, 0, true, 8},
                    {"three numbers", "{}", {{4, 3}}, 0, true, 8},
                    {"one sample", "{}", {{1, 37}}, 0, true, 8},
                    {"sentences", "{}", {{3, 5, 17}}, 0, true, 8},
                    {"image", "{axes: 3}", {{4, 3, 5, 6}}, 0, true, 8},
                    {"planes", "{axes: 2}", {{4, 3, 5, 6}}, 0, true, 8},
                    {"eps", "{eps: 0.01}", {{6, 16}}, 0, true, 8},
                    {"nothing learned", "{affine: false}", {{6, 33}}, 0, true, 8},
                    {"transformer", "{}", {{8, 20, 256}}, 0, false, 16},
                    {"long rows", "{axes: 3}", {{2, 16, 40, 40}}, 0, false, 16}});

}  // namespace
}  // namespace dtrain
