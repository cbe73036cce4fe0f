// Declares the CPU kernel of the attention decoder.  Forward is in attention_decoder_cpu.cc, backward in
// decoder_backward.cc.
//
// Forward computes the encoder half of the attention for all steps in one product.  Then threads divide the sentences
// and run the steps without waiting for each other.  The scores y_t are computed within the loop only if the next step
// reads its most likely token; all others are computed after the loop, divided by words.  Backward computes the
// gradients of fc_out in one product over all steps, then the gradients that flow from step to step, then those of all
// other weights, with one product for each.
#pragma once

#include <memory>
#include <vector>

#include "framework/nn/kernel.h"
#include "framework/nn/step_decoder.h"
#include "layers/attention_decoder/decoder_step.h"

namespace dtrain {

class AttentionDecoderKernel : public Kernel {
 public:
  explicit AttentionDecoderKernel(const KernelRequest& request);

  KernelNeeds Needs() const override;
  void Forward(const KernelArgs& args) override;
  void Backward(const KernelArgs& args) override;
  StepDecoder* step_decoder() override { return step_decoder_.get(); }

 private:
  void PlaceMemory();

  // These functions are in attention_decoder_cpu.cc.
  void FindSentences(const KernelArgs& args, int64_t lengths, int64_t sentence) const;
  bool ChoosesItself(const KernelArgs& args, int64_t t) const;  // token_t is the decoder's choice
  void ForwardSentences(const KernelArgs& args, const DecoderWeights& weights,
                        Range sentences) const;
  void EmbedTokens(const KernelArgs& args, int64_t t, int64_t n) const;
  void DropRow(const KernelArgs& args, int64_t t, int64_t n, float* row) const;
  // Returns the matrices of step t, with one row for each of `sentences`.  `lengths` and `sentence` are offsets of the
  // lengths and sentence numbers in the scratch memory, in floats.
  DecoderRows RowsAt(const KernelArgs& args, int64_t t, Range sentences, int64_t lengths,
                     int64_t sentence) const;

  // The backward pass is in decoder_backward.cc.
  struct BackwardWeights;
  BackwardWeights BindBackward(const KernelArgs& args) const;
  void OutputGradients(const KernelArgs& args) const;
  void BackwardSentences(const KernelArgs& args, const BackwardWeights& weights,
                         Range sentences) const;
  void BackwardStep(const KernelArgs& args, const BackwardWeights& weights, int64_t t,
                    Range sentences) const;
  void RecurrentGradients(const KernelArgs& args) const;
  void AttentionGradients(const KernelArgs& args) const;
  void EmbeddingGradients(const KernelArgs& args) const;
  void EncoderGradients(const KernelArgs& args) const;

  // All() has a row for each (n, t); StepOf() is one step of it.
  Matrix All(float* data, int64_t columns) const { return Matrix::Dense(data, N_ * T_, columns); }
  Matrix StepOf(const Matrix& all, int64_t t, Range sentences) const {
    return all.Every(T_, sentences.begin * T_ + t, sentences.size());
  }
  float* Kept(const KernelArgs& args, int64_t at) const {
    return static_cast<float*>(training_ ? args.saved : args.scratch) + at;
  }
  Matrix Kept(const KernelArgs& args, int64_t at, int64_t columns) const {
    return All(Kept(args, at), columns);
  }
  float* Scratch(const KernelArgs& args, int64_t at) const {
    return static_cast<float*>(args.scratch) + at;
  }
  Matrix Scratch(const KernelArgs& args, int64_t at, int64_t columns) const {
    return All(Scratch(args, at), columns);
  }
  // The encoder outputs are [N S, C], the keys [N S, A].
  Matrix EncoderOutputs(const KernelArgs& args) const {
    return Matrix::Dense(args.inputs[0].f32(), N_ * sizes_.S, sizes_.C);
  }
  Matrix Keys(const KernelArgs& args) const {
    return Matrix::Dense(Kept(args, keys_), N_ * sizes_.S, sizes_.A);
  }
  int64_t* Integers(const KernelArgs& args, int64_t at) const {
    return reinterpret_cast<int64_t*>(Scratch(args, at));
  }
  int32_t* Tokens(const KernelArgs& args) const {  // [N, T]: the token that each step read
    return reinterpret_cast<int32_t*>(Kept(args, tokens_));
  }

  const AttentionDecoder& layer_;
  const uint64_t layer_index_;
  const DecoderSizes sizes_;
  const int64_t N_, T_, F_;  // sentences, steps, features
  const bool training_;
  const Device device_;
  std::unique_ptr<StepDecoder> step_decoder_;  // evaluation only

  // The offsets are in floats.  These are kept from forward to backward: for each (n, t) features [F], gates [4 H],
  // query [A], weights [S] and the token; keys [N, S, A].
  FloatRoom kept_, forward_, backward_;
  int64_t features_ = 0, gates_ = 0, query_ = 0, weights_ = 0, tokens_ = 0, keys_ = 0;
  // These are offsets in Forward's scratch memory.
  int64_t packed_ = 0, from_state_ = 0, lengths_ = 0, sentence_ = 0;
  // These are offsets in Backward's scratch memory: for each (n, t) dfeatures [F], before [H] (the previous state),
  // dquery [A]; for each n dstate [H], dv [A], room [S]; dkeys [N, S, A].
  int64_t packed_back_ = 0, dfeatures_ = 0, before_ = 0, dquery_ = 0, dstate_ = 0, dv_ = 0,
          room_ = 0, dkeys_ = 0;
  int64_t lengths_back_ = 0, sentence_back_ = 0;
};

std::unique_ptr<StepDecoder> MakeAttentionStepDecoder(const AttentionDecoder& layer,
                                                      const Device& device);

}  // namespace dtrain
