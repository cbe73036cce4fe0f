#include "layers/eltwise/eltwise_ref.h"

namespace dtrain {
namespace {

DTRAIN_LAYER_CASES("eltwise", EltwiseReference,
                   {{"vector", "{}", {{4, 10}, {4, 10}}},
                    {"image", "{operation: sum}", {{3, 5, 7, 6}, {3, 5, 7, 6}}},
                    {"two blocks of samples", "{}", {{18, 3, 4, 4}, {18, 3, 4, 4}}},
                    {"long", "{}", {{2, 40000}, {2, 40000}}, 0, false}});

}  // namespace
}  // namespace dtrain
