#include "layers/attention_decoder/attention_decoder_ref.h"

namespace dtrain {
namespace {

// A chain of rounded functions, step after step.
constexpr double kTolerance = 12;

struct Sizes {
  int64_t N, S, T, C, H, V;
};

// Central differences lose their digits in sums of many terms: small cases only.
LayerCase Case(const std::string& name, const std::string& yaml, const Sizes& s) {
  return {.name = name,
          .yaml = yaml,
          .inputs = {{s.N, s.S, s.C}, {s.N, s.H}, {s.N, s.S}, {s.N, s.T}},
          .central_differences = s.C < 30,
          .tolerance = kTolerance,
          .input_classes = {0, 0, 9, s.V}};
}

DTRAIN_LAYER_CASES(
    "attention_decoder", AttentionDecoderReference,
    {Case("one step", "{hidden: 3, embedding: 2}", {2, 3, 1, 4, 3, 7}),
     Case("always taught", "{hidden: 4, embedding: 3, teacher_forcing: 1}", {3, 4, 5, 6, 4, 11}),
     Case("never taught", "{hidden: 4, embedding: 3, teacher_forcing: 0}", {3, 4, 5, 6, 4, 11}),
     Case("coins and dropout", "{hidden: 5, embedding: 6, attention: 7, dropout: 0.5}",
          {4, 5, 6, 4, 5, 13}),
     Case("one place to look at", "{hidden: 3, embedding: 2}", {3, 1, 3, 4, 3, 7}),
     Case("another pad", "{hidden: 3, embedding: 2, pad: 0}", {4, 3, 3, 4, 3, 8}),
     Case("wider than a panel", "{hidden: 20, embedding: 18, attention: 19}",
          {9, 3, 4, 34, 20, 61})});

}  // namespace
}  // namespace dtrain
