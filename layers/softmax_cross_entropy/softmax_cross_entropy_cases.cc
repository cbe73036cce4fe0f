#include "layers/softmax_cross_entropy/softmax_cross_entropy_ref.h"

namespace dtrain {
namespace {

// The exponential, the logarithm and the division each round once more than a plain sum.
DTRAIN_LAYER_CASES("softmax_cross_entropy", SoftmaxCrossEntropyReference,
                   {{"two classes", "{}", {{3, 2}, {3}}, 2, true, 4},
                    {"ten classes", "{}", {{17, 10}, {17}}, 10, true, 4},
                    {"one class", "{}", {{4, 1}, {4}}, 1, true, 4},
                    {"many classes", "{}", {{2, 1000}, {2}}, 1000, false, 4}});

}  // namespace
}  // namespace dtrain
