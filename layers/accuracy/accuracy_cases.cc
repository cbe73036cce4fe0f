#include "layers/accuracy/accuracy_ref.h"

namespace dtrain {
namespace {

DTRAIN_LAYER_CASES("accuracy", AccuracyReference,
                   {{"two classes", "{}", {{40, 2}, {40}}, 2},
                    {"ten classes", "{}", {{17, 10}, {17}}, 10},
                    {"five of ten", "{top_k: 5}", {{40, 10}, {40}}, 10},
                    {"all but one", "{top_k: 6}", {{20, 7}, {20}}, 7}});

}  // namespace
}  // namespace dtrain
