#include "layers/final_state/final_state_ref.h"

namespace dtrain {
namespace {

DTRAIN_LAYER_CASES(
    "final_state", FinalStateReference,
    {{.name = "one pass", .yaml = "{}", .inputs = {{5, 4, 3}, {5, 4}}, .input_classes = {0, 9}},
     {.name = "two passes",
      .yaml = "{bidirectional: true}",
      .inputs = {{6, 5, 8}, {6, 5}},
      .input_classes = {0, 9}},
     {.name = "another pad",
      .yaml = "{bidirectional: true, pad: 3}",
      .inputs = {{6, 5, 2}, {6, 5}},
      .input_classes = {0, 5}},
     {.name = "one token", .yaml = "{}", .inputs = {{2, 1, 3}, {2, 1}}, .input_classes = {0, 4}}});

}  // namespace
}  // namespace dtrain
