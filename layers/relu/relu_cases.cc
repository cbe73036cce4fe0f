#include "layers/relu/relu_ref.h"

namespace dtrain {
namespace {

DTRAIN_LAYER_CASES("relu", ReluReference,
                   {{"one number", "{}", {{1, 1}}},
                    {"vector", "{}", {{4, 10}}},
                    {"image", "{}", {{3, 5, 7, 6}}},
                    {"two blocks of samples", "{}", {{18, 3, 4, 4}}},
                    {"long", "{}", {{2, 40000}}, 0, false}});

}  // namespace
}  // namespace dtrain
