// Decoder with additive attention (Bahdanau, Cho, Bengio 2015).  Model and parameter names are those of the third
// tutorial of github.com/bentrevett/pytorch-seq2seq.  It computes, at step t of a sentence:
//
//   e = dropout(embedding[token_t])                       [E]
//   energy_j = tanh(attn [s_{t-1}; h_j] + b)              [A], for each word j of the source
//   score_j = v . energy_j                                a number
//   a = softmax of the scores                             without the padding of the source
//   c = sum_j a_j h_j                                     [C]
//   s_t = GRU([e; c], s_{t-1})                            [H]  (framework/kernels/cpu/loops.h)
//   y_t = fc_out [s_t; c; e] + b                          [V]
//
//   inputs   h [N, S, C] encoder outputs; s_{-1} [N, H]; source [N, S], target [N, T] int32 tokens
//   output   y [N, T, V]: scores for the token that follows target's token t
//   sizes    A: key `attention`, or H if that is 0;  E: key `embedding`;  V: key `vocabulary`, or, if not
//            given, the number of classes of the target's tokens
//   parameters
//     attention.attn.weight [A, H + C]     attention.attn.bias [A]     attention.v.weight [1, A]
//     embedding.weight      [V, E]
//     rnn.weight_ih_l0      [3 H, E + C]   rnn.bias_ih_l0      [3 H]
//     rnn.weight_hh_l0      [3 H, H]       rnn.bias_hh_l0      [3 H]
//     fc_out.weight         [V, H + C + E] fc_out.bias         [V]
//
// token_0 is the target's first token.  In training, token_t is the target's token t with probability `teacher_forcing`
// (one random draw per step t, shared by the whole batch), else the most likely token by y_{t-1}.  In evaluation it is
// always the most likely token.  No gradient flows through this choice.
#pragma once

#include "framework/core/random.h"
#include "framework/nn/layer.h"

namespace dtrain {

class AttentionDecoder : public Layer {
 public:
  void Configure(config::Reader& reader) override;
  void SetInputClasses(std::span<const int64_t> classes) override;
  std::vector<Shape> InferShapes(std::span<const Shape> inputs) override;
  std::vector<ParamSpec> Params() const override;
  Cost CostOf(std::span<const Shape> inputs) const override;
  int input_count() const override { return 4; }
  InputKind input_kind(int input) const override {
    return input >= 2 ? InputKind::kClasses : InputKind::kNumbers;
  }
  bool InputHasGradient(int input) const override { return input < 2; }

  int64_t hidden() const { return hidden_; }
  int64_t embedding() const { return embedding_; }
  int64_t attention() const { return attention_; }
  int64_t vocabulary() const { return vocabulary_; }
  int64_t pad() const { return pad_; }
  double dropout() const { return dropout_; }
  double teacher_forcing() const { return teacher_forcing_; }

  // These are indices into Params().
  enum Param {
    kAttnWeight,
    kAttnBias,
    kV,
    kEmbedding,
    kWeightIn,
    kWeightState,
    kBiasIn,
    kBiasState,
    kOutWeight,
    kOutBias
  };

 private:
  int64_t hidden_ = 0, embedding_ = 0, attention_ = 0, vocabulary_ = 0, pad_ = 0;
  int64_t context_ = 0;  // C, known after InferShapes
  double dropout_ = 0, teacher_forcing_ = 0;
  InitSpec weight_init_;
  InitSpec bias_init_;
};

struct DecoderSizes {
  int64_t H, C, E, A, V, S;
  int64_t features() const { return H + C + E; }

  static DecoderSizes Of(const AttentionDecoder& layer, const Shape& encoder_outputs);
};

// Returns true if decoder step t > 0 of training step `step` reads the target's token.
constexpr bool TeacherForces(double probability, uint64_t seed, uint64_t layer_index, uint64_t step,
                             int64_t t) {
  return Random(seed, Purpose::kTeacherForcing, layer_index, step)
             .Uniform(static_cast<uint64_t>(t)) < static_cast<float>(probability);
}

// Returns the random stream for dropout on e at step t: element i is dropped if Bits(i) < dropout * 2^32.  Each t has
// its own stream; t + 1 is shifted by 16 bits, so that streams of different layers do not collide.
constexpr Random DecoderDropout(uint64_t seed, uint64_t layer_index, uint64_t step,
                                int64_t position, int64_t t) {
  return Random(seed, Purpose::kDropout, layer_index + (static_cast<uint64_t>(t + 1) << 16),
                (step << 20) + static_cast<uint64_t>(position));
}

}  // namespace dtrain
