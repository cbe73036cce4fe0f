#include "layers/tanh/tanh_ref.h"

namespace dtrain {
namespace {

DTRAIN_LAYER_CASES("tanh", TanhReference,
                   {{"vector", "{}", {{4, 10}}},
                    {"image", "{}", {{3, 5, 7, 6}}},
                    {"two blocks of samples", "{}", {{18, 3, 4, 4}}},
                    {"long", "{}", {{2, 40000}}, 0, false}});

}  // namespace
}  // namespace dtrain
