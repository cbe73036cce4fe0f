#include "layers/flatten/flatten_ref.h"

namespace dtrain {
namespace {

DTRAIN_LAYER_CASES("flatten", FlattenReference,
                   {{"image", "{}", {{3, 2, 4, 5}}}, {"already flat", "{}", {{2, 7}}}});

}  // namespace
}  // namespace dtrain
