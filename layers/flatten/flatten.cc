#include "layers/flatten/flatten.h"

namespace dtrain {
namespace {

DTRAIN_LAYER("flatten", Flatten, "all axes but the batch become one");

}  // namespace
}  // namespace dtrain
