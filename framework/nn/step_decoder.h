// StepDecoder: a decoder layer, one step at a time - what greedy and beam search need of it.
//
// The kernel of a decoding layer has one (Kernel::step_decoder, null for all other layers).  The
// net runs the encoder's calls as in an evaluation and, where the decoder's turn comes, starts it
// instead of calling Forward:
//
//   StepDecoder& decoder = net.StartDecoding(weights, state, input);   // input: N sentences
//   parents = 0 .. N-1, tokens = <sos>;
//   loop: decoder.Step(parents, tokens, log_probabilities); choose parents and tokens
//
// A hypothesis is the beginning of an answer to one sentence.  At the start each of the N sentences
// has one, empty; row h of a step is hypothesis parents[h] of the step before, followed by
// tokens[h]. So beams grow (the same parent several times), are reordered and end (a parent nobody
// names) by what the caller passes.  Hypotheses of different sentences stand side by side in any
// order, and each is independent of the others: a beam of one, in any batch, gives the bits of
// greedy search.
//
// Not for the training step: it allocates.
#pragma once

#include <cstdint>
#include <span>

#include "framework/nn/kernel.h"

namespace dtrain {

class StepDecoder {
 public:
  virtual ~StepDecoder() = default;

  // Begins with the decoder's inputs: as KernelArgs of Forward in evaluation (inputs, params;
  // outputs are not touched).  Copies what it needs of the inputs; the parameters must stay where
  // they are and as they are until the last Step.
  virtual void Start(const KernelArgs& args) = 0;

  // Row h of this step: hypothesis parents[h] of the step before (after Start: sentence
  // parents[h]), followed by tokens[h].  Writes log P(next token = v | row h) to
  // log_probabilities[h * vocabulary() + v].  parents and tokens have the same length, which may
  // change from step to step.
  virtual void Step(std::span<const int64_t> parents, std::span<const int32_t> tokens,
                    float* log_probabilities) = 0;

  // How many tokens it knows (V), and sentences it was started with.
  virtual int64_t vocabulary() const = 0;
  virtual int64_t sentences() const = 0;
};

}  // namespace dtrain
