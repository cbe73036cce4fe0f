#include "layers/concat/concat_ref.h"

namespace dtrain {
namespace {

DTRAIN_LAYER_CASES("concat", ConcatReference,
                   {{"two vectors", "{}", {{4, 3}, {4, 5}}},
                    {"three sequences", "{}", {{3, 4, 2}, {3, 4, 1}, {3, 4, 6}}},
                    {"one", "{}", {{2, 7}}}});

}  // namespace
}  // namespace dtrain
