#include "layers/gru/gru_ref.h"

namespace dtrain {
namespace {

// Each step passes a few rounded functions, and errors are carried along.
constexpr double kTolerance = 8;

LayerCase Case(const std::string& name, const std::string& yaml, int64_t N, int64_t T, int64_t I) {
  return {.name = name,
          .yaml = yaml,
          .inputs = {{N, T, I}, {N, T}},
          .tolerance = kTolerance,
          .input_classes = {0, 9}};
}

DTRAIN_LAYER_CASES("gru", GruReference,
                   {Case("one step", "{hidden: 3}", 2, 1, 2),
                    Case("sentences", "{hidden: 5}", 4, 6, 3),
                    Case("both ways", "{hidden: 4, bidirectional: true}", 5, 5, 7),
                    Case("two layers", "{hidden: 3, layers: 2}", 3, 4, 5),
                    Case("two layers both ways with dropout",
                         "{hidden: 3, layers: 2, bidirectional: true, dropout: 0.4}", 3, 4, 2),
                    Case("another pad", "{hidden: 3, pad: 0}", 3, 4, 2),
                    Case("wider than a panel", "{hidden: 37, bidirectional: true}", 9, 3, 20)});

}  // namespace
}  // namespace dtrain
