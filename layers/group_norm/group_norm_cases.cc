// Defines the test cases of group normalisation; the reference implementation is in row_norm_ref.h.
#include "framework/nn/row_norm_ref.h"

namespace dtrain {
namespace {

class GroupNormReference : public RowNormReference {};

// The tolerance is larger than the cost of one element suggests, because every result depends on sums over a group.
DTRAIN_LAYER_CASES("group_norm", GroupNormReference,
                   {{"image", "{groups: 2}", {{4, 6, 5, 3}}, 0, true, 8},
                    {"one group", "{groups: 1}", {{3, 3, 4, 5}}, 0, true, 8},
                    {"every channel", "{groups: 5}", {{3, 5, 4, 4}}, 0, true, 8},
                    {"vector", "{groups: 3}", {{7, 12}}, 0, true, 8},
                    {"one sample", "{groups: 4}", {{1, 8, 3, 3}}, 0, true, 8},
                    {"sentences", "{groups: 2}", {{3, 4, 9}}, 0, true, 8},
                    {"eps", "{groups: 2, eps: 0.01}", {{4, 4, 3, 3}}, 0, true, 8},
                    {"nothing learned", "{groups: 3, affine: false}", {{2, 6, 4, 5}}, 0, true, 8},
                    {"resnet stage", "{groups: 32}", {{8, 64, 16, 16}}, 0, false, 16}});

}  // namespace
}  // namespace dtrain
