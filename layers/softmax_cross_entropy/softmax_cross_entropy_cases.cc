#include "layers/softmax_cross_entropy/softmax_cross_entropy_ref.h"

namespace dtrain {
namespace {

// The exponential, the logarithm and the division each round once more than a plain sum.
DTRAIN_LAYER_CASES(
    "softmax_cross_entropy", SoftmaxCrossEntropyReference,
    {{"two classes", "{}", {{3, 2}, {3}}, 2, true, 4},
     {"ten classes", "{}", {{17, 10}, {17}}, 10, true, 4},
     {"one class", "{}", {{4, 1}, {4}}, 1, true, 4},
     {"many classes", "{}", {{2, 1000}, {2}}, 1000, false, 4},
     {"sentences", "{}", {{3, 5, 11}, {3, 5}}, 11, true, 4},
     {"padded sentences", "{ignore: 1}", {{3, 7, 5}, {3, 7}}, 5, true, 4},
     {"maps of labels", "{ignore: 0}", {{2, 3, 2, 4}, {2, 3, 2}}, 4, true, 4},
     {"smoothing", "{label_smoothing: 0.1}", {{5, 10}, {5}}, 10, true, 4},
     {"smoothing, padded", "{label_smoothing: 0.2, ignore: 1}", {{3, 4, 37}, {3, 4}}, 37, true, 4},
     {"vocabulary", "{ignore: 1}", {{4, 5, 1777}, {4, 5}}, 1777, false, 4}});

}  // namespace
}  // namespace dtrain
