// StepDecoder runs a decoder layer one step at a time, for greedy and beam search.
//
// The kernel of a decoder layer has one (Kernel::step_decoder, null for all other layers).  The net runs the encoder's
// calls as in an evaluation and, at the decoder's call, calls Start instead of Forward:
//
//   StepDecoder& decoder = net.StartDecoding(weights, state, input);   // input: N sentences
//   parents = 0 .. N-1, tokens = <sos>;
//   loop: decoder.Step(parents, tokens, log_probabilities); choose parents and tokens
//
// A hypothesis is the beginning of an answer to one sentence.  At the start each of the N sentences
// has one, empty; row h of a step is hypothesis parents[h] of the step before, followed by
// tokens[h].  So the caller's arguments make beams grow (the same parent several times), reorder them and end them (a
// parent that is not named).  Hypotheses of different sentences may be in any order, and each is independent of the
// others: a beam of one, in any batch, gives the bits of greedy search.
//
// It allocates memory, so a training step must not use it.
#pragma once

#include <cstdint>
#include <span>

#include "framework/nn/kernel.h"

namespace dtrain {

class StepDecoder {
 public:
  virtual ~StepDecoder() = default;

  // Starts decoding with Forward's arguments in evaluation (inputs, params; outputs are not touched).  It copies what
  // it needs of the inputs; the parameters must not move or change until the last Step.
  virtual void Start(const KernelArgs& args) = 0;

  // Row h of this step is hypothesis parents[h] of the step before (after Start: sentence parents[h]), followed by
  // tokens[h].  Writes log P(next token = v | row h) to log_probabilities[h * vocabulary() + v].  parents and tokens
  // have the same length, which may change from step to step.
  virtual void Step(std::span<const int64_t> parents, std::span<const int32_t> tokens,
                    float* log_probabilities) = 0;

  // The size of the vocabulary (V), and the number of sentences passed to Start.
  virtual int64_t vocabulary() const = 0;
  virtual int64_t sentences() const = 0;
};

}  // namespace dtrain
