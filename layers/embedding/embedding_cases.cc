#include "layers/embedding/embedding_ref.h"

namespace dtrain {
namespace {

DTRAIN_LAYER_CASES(
    "embedding", EmbeddingReference,
    {{.name = "sentences", .yaml = "{outputs: 5}", .inputs = {{4, 6}}, .input_classes = {9}},
     {.name = "one token each",
      .yaml = "{outputs: 3, weight_init: {name: gaussian, value: 0.01}}",
      .inputs = {{7, 1}},
      .input_classes = {5}},
     {.name = "most words missing",
      .yaml = "{outputs: 16, vocabulary: 300}",
      .inputs = {{3, 8}},
      .input_classes = {300}}});

}  // namespace
}  // namespace dtrain
