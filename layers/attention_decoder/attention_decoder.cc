#include "layers/attention_decoder/attention_decoder.h"

#include "framework/core/error.h"
#include "framework/nn/initializer.h"
#include "framework/nn/tokens.h"

namespace dtrain {

void AttentionDecoder::Configure(config::Reader& reader) {
  hidden_ =
      reader.Int("hidden", 1).Required().Min(1).Max(kLargestExtent).Help("length of the state");
  embedding_ = reader.Int("embedding", 1)
                   .Required()
                   .Min(1)
                   .Max(kLargestExtent)
                   .Help("length of a token's vector");
  attention_ = reader.Int("attention", 0)
                   .Min(0)
                   .Max(kLargestExtent)
                   .Help("length of the attention's hidden vector; 0: as the state");
  if (attention_ == 0) attention_ = hidden_;
  vocabulary_ = ReadVocabulary(reader);
  dropout_ = reader.Number("dropout", 0)
                 .Min(0)
                 .Below(1)
                 .Help("share of the elements of a token's vector set to 0 while training");
  teacher_forcing_ =
      reader.Number("teacher_forcing", 0.5)
          .Min(0)
          .Max(1)
          .Help(
              "probability that a training step reads the true token instead of the predicted one");
  pad_ = reader.Int("pad", kPadToken)
             .Min(0)
             .Help("token that fills a sentence up to the length of the batch");
  weight_init_ =
      ReadInitSpec(reader.Section("weight_init", "initial values of the weights"), {"xavier", 0});
  bias_init_ =
      ReadInitSpec(reader.Section("bias_init", "initial values of the biases"), {"constant", 0});
}

void AttentionDecoder::SetInputClasses(std::span<const int64_t> classes) {
  vocabulary_ = VocabularyOf(vocabulary_, classes[3], "its target holds");
}

std::vector<Shape> AttentionDecoder::InferShapes(std::span<const Shape> inputs) {
  const Shape &h = inputs[0], &state = inputs[1], &source = inputs[2], &target = inputs[3];
  if (h.rank() != 3 || source.rank() != 2 || h[0] != source[0] || h[1] != source[1]) {
    throw ShapeError("encoder outputs of shape " + h.ToString() + " and source tokens of shape " +
                     source.ToString() + " do not fit; it takes [N, S, C] and [N, S]");
  }
  if (state != Shape{h[0], hidden_}) {
    throw ShapeError("a first state of shape " + state.ToString() + " does not fit; it takes " +
                         Shape{h[0], hidden_}.ToString(),
                     "the key hidden is the length of the first state");
  }
  if (target.rank() != 2 || target[0] != h[0]) {
    throw ShapeError("target tokens of shape " + target.ToString() + " do not fit " +
                     std::to_string(h[0]) + " sentences; it takes [N, T]");
  }
  context_ = h[2];
  return {{target[0], target[1], vocabulary_}};
}

std::vector<ParamSpec> AttentionDecoder::Params() const {
  const int64_t H = hidden_, E = embedding_, C = context_, A = attention_, V = vocabulary_;
  const auto weight = [&](const std::string& name, int64_t out, int64_t in) {
    return ParamSpec{name, {out, in}, weight_init_, in, out};
  };
  const auto bias = [&](const std::string& name, int64_t out, int64_t in) {
    return ParamSpec{name, {out}, bias_init_, in, out};
  };
  return {weight("attention.attn.weight", A, H + C), bias("attention.attn.bias", A, H + C),
          weight("attention.v.weight", 1, A),        weight("embedding.weight", V, E),
          weight("rnn.weight_ih_l0", 3 * H, E + C),  weight("rnn.weight_hh_l0", 3 * H, H),
          bias("rnn.bias_ih_l0", 3 * H, E + C),      bias("rnn.bias_hh_l0", 3 * H, H),
          weight("fc_out.weight", V, H + C + E),     bias("fc_out.bias", V, H + C + E)};
}

Cost AttentionDecoder::CostOf(std::span<const Shape> inputs) const {
  const auto N = static_cast<double>(inputs[0][0]), S = static_cast<double>(inputs[0][1]);
  const auto T = static_cast<double>(inputs[3][1]), C = static_cast<double>(inputs[0][2]);
  const auto H = static_cast<double>(hidden_), E = static_cast<double>(embedding_);
  const auto A = static_cast<double>(attention_), V = static_cast<double>(vocabulary_);
  const double products = N * S * A * C + N * T * (A * H + 3 * H * (E + C + H) + V * (H + C + E));
  const double attention = N * T * S * (11 * A + C);  // a tanh counts as about 20 operations
  return {2 * (products + attention), 4 * (products + attention)};
}

DecoderSizes DecoderSizes::Of(const AttentionDecoder& layer, const Shape& encoder_outputs) {
  return {layer.hidden(),    encoder_outputs[2], layer.embedding(),
          layer.attention(), layer.vocabulary(), encoder_outputs[1]};
}

namespace {
DTRAIN_LAYER("attention_decoder", AttentionDecoder,
             "GRU decoder with additive attention over an encoder's outputs");
}

}  // namespace dtrain
