#include "layers/inner_product/inner_product_ref.h"

namespace dtrain {
namespace {

DTRAIN_LAYER_CASES(
    "inner_product", InnerProductReference,
    {{"tiny", "{outputs: 3}", {{2, 5}}},
     {"one sample", "{outputs: 7}", {{1, 33}}},
     {"one output", "{outputs: 1}", {{19, 6}}},
     {"no bias", "{outputs: 10, bias: false}", {{17, 84}}},
     {"each step of a sequence", "{outputs: 6, axis: 2}", {{3, 7, 5}}},
     {"image", "{outputs: 12}", {{5, 3, 4, 4}}},
     {"two panels and a rest", "{outputs: 13}", {{37, 31}}},
     {"lenet fc1", "{outputs: 120}", {{64, 400}}, 0, false},
     {"deeper than a block", "{outputs: 9}", {{70, 1100}}, 0, false},
     {"gaussian start", "{outputs: 4, weight_init: {name: gaussian, value: 0.1}}", {{3, 8}}}});

}  // namespace
}  // namespace dtrain
