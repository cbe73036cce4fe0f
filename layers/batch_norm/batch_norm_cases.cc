#include "layers/batch_norm/batch_norm_ref.h"

namespace dtrain {
namespace {

// Every result passes through sums over the batch that the cost of one element does not show.
DTRAIN_LAYER_CASES("batch_norm", BatchNormReference,
                   {{"image", "{}", {{4, 3, 5, 6}}, 0, true, 8},
                    {"one channel", "{}", {{6, 1, 4, 4}}, 0, true, 8},
                    {"vector", "{}", {{12, 5}}, 0, true, 8},
                    {"one sample", "{}", {{1, 4, 6, 6}}, 0, true, 8},
                    {"whole vectors of channels", "{}", {{3, 16, 4, 4}}, 0, true, 8},
                    {"eps, momentum", "{eps: 0.01, momentum: 0.3}", {{5, 7, 3, 3}}, 0, true, 8},
                    {"sync, image", "{sync: true}", {{4, 3, 5, 6}}, 0, true, 8},
                    {"sync, vector", "{sync: true}", {{12, 5}}, 0, true, 8},
                    {"sync, one sample", "{sync: true}", {{1, 4, 6, 6}}, 0, true, 8},
                    {"sync, whole vectors", "{sync: true}", {{3, 32, 4, 5}}, 0, true, 8},
                    {"sync, odd channels", "{sync: true}", {{2, 37, 7, 3}}, 0, true, 8},
                    {"sync, resnet stage", "{sync: true}", {{8, 64, 16, 16}}, 0, false, 16},
                    {"resnet stage", "{}", {{8, 64, 16, 16}}, 0, false, 16},
                    {"past the caches", "{}", {{8, 64, 32, 32}}, 0, false, 16}});

}  // namespace
}  // namespace dtrain
