// Translation with a net that has a decoder (nn/step_decoder.h).
#pragma once

#include <cstdint>
#include <vector>

#include "framework/comm/transport.h"
#include "framework/data/text/bleu.h"
#include "framework/data/text/sentence_pairs.h"
#include "framework/nn/net.h"
#include "framework/nn/step_decoder.h"

namespace dtrain {

struct SearchOptions {
  int64_t beam = 1;         // hypotheses of a sentence that go on
  int64_t max_length = 50;  // words of an answer
};

// Beam search (beam_search.cc): the likeliest answers of a step decoder, word by word.  With a beam
// of one it is greedy search: always the likeliest next word.
//
// `decoder` has been started.  Answer s belongs to its sentence s: word numbers without marks.
//
// A hypothesis is worth the sum of its words' log probabilities, <eos> included; each sentence goes
// on with its best ones.  One that ends makes the sentence's beam narrower by one.  Of those that
// ended - or were cut at max_length - the one with the best mean over its words is the answer.  Of
// equals, the hypothesis that ranked higher and then the smaller word number goes first.  <pad> and
// <sos> are never said.
std::vector<std::vector<int32_t>> BeamSearch(StepDecoder& decoder, const SearchOptions& options);

// Answers to sentences of word numbers without marks.  An answer depends on its own sentence alone,
// not on those beside it.
std::vector<std::vector<int32_t>> Translate(Net& net, ConstArena weights, ConstArena state,
                                            const std::vector<std::vector<int32_t>>& sentences,
                                            const SearchOptions& options);

// BLEU counts of this rank's part of a split; nothing for a net without a decoder, or for a set
// that is no text.
BleuCounts TranslateSplit(Net& net, const Dataset& dataset, Split split, ConstArena weights,
                          ConstArena state, int rank, int ranks, const SearchOptions& options = {});

// All ranks call it at a boundary; all get the sum.
BleuCounts JoinCounts(Transport& transport, const BleuCounts& mine);

}  // namespace dtrain
