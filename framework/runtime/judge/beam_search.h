// Beam search: the likeliest answers of a step decoder, word by word.  With a beam of one it is
// greedy search: always the likeliest next word.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/nn/step_decoder.h"

namespace dtrain {

struct SearchOptions {
  int64_t beam = 1;         // hypotheses of a sentence that go on
  int64_t max_length = 50;  // words of an answer
};

// `decoder` has been started.  Answer s belongs to its sentence s: word numbers without marks.
//
// A hypothesis is worth the sum of its words' log probabilities, <eos> included; each sentence goes
// on with its best ones.  One that ends makes the sentence's beam narrower by one.  Of those that
// ended - or were cut at max_length - the one with the best mean over its words is the answer.  Of
// equals, the hypothesis that ranked higher and then the smaller word number goes first.  <pad> and
// <sos> are never said.
std::vector<std::vector<int32_t>> BeamSearch(StepDecoder& decoder, const SearchOptions& options);

}  // namespace dtrain
