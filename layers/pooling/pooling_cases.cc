#include "layers/pooling/pooling_ref.h"

namespace dtrain {
namespace {

DTRAIN_LAYER_CASES(
    "pooling", PoolingReference,
    {{"defaults", "{}", {{1, 2, 4, 6}}},
     {"odd image", "{}", {{5, 3, 7, 5}}},
     {"overlap", "{kernel: 3, stride: 2}", {{2, 3, 7, 9}}},
     {"overlap, pad", "{kernel: 3, stride: 2, pad: 1}", {{3, 2, 8, 6}}},
     {"gaps", "{kernel: 2, stride: 3}", {{2, 2, 9, 8}}},
     {"two blocks and a rest", "{}", {{33, 3, 4, 6}}},
     {"block, odd image", "{}", {{16, 2, 5, 7}}},
     {"block, overlap, pad", "{kernel: 3, stride: 2, pad: 1}", {{18, 3, 7, 8}}},
     {"whole image", "{kernel: 6}", {{4, 5, 6, 6}}},
     {"average", "{method: average}", {{5, 3, 6, 4}}},
     {"average, pad", "{method: average, kernel: 3, stride: 2, pad: 1}", {{2, 3, 7, 8}}},
     {"average, blocks", "{method: average, kernel: 3, stride: 1, pad: 1}", {{33, 2, 6, 5}}},
     {"average, odd image", "{method: average}", {{17, 2, 7, 5}}},
     {"global average", "{method: average, global: true}", {{3, 5, 4, 4}}},
     {"global average, wide", "{method: average, global: true}", {{18, 3, 5, 17}}},
     {"global maximum", "{global: true}", {{2, 3, 7, 9}}},
     {"lenet first", "{}", {{64, 6, 28, 28}}, 0, false}});

}  // namespace
}  // namespace dtrain
