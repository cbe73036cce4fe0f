#include "layers/accuracy/accuracy_ref.h"

namespace dtrain {
namespace {

DTRAIN_LAYER_CASES("accuracy", AccuracyReference,
                   {{"two classes", "{}", {{40, 2}, {40}}, 2},
                    {"ten classes", "{}", {{17, 10}, {17}}, 10}});

}  // namespace
}  // namespace dtrain
