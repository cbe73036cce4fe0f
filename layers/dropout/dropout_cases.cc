#include "layers/dropout/dropout_ref.h"

namespace dtrain {
namespace {

DTRAIN_LAYER_CASES("dropout", DropoutReference,
                   {{"one number", "{}", {{1, 1}}},
                    {"half", "{}", {{4, 10}}},
                    {"a tenth of an image", "{ratio: 0.1}", {{3, 2, 5, 7}}},
                    {"nothing", "{ratio: 0}", {{2, 5}}},
                    {"more than a vector of blocks", "{ratio: 0.7}", {{3, 301}}},
                    {"wide", "{}", {{20, 4096}}, 0, false}});

}  // namespace
}  // namespace dtrain
