// Translates with a net that has a decoder (nn/step_decoder.h).
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
  int64_t beam = 1;         // hypotheses kept for a sentence
  int64_t max_length = 50;  // maximum number of words of an answer
};

// Makes a beam search (beam_search.cc) for the likeliest answers of a step decoder, word by word.  With a beam of one
// it is greedy search: always the likeliest next word.
//
// REQUIRES: `decoder` has been started.  Answer s belongs to its sentence s, as word numbers without marks.
//
// The score of a hypothesis is the sum of the log probabilities of its words, <eos> included; the best hypotheses of
// each sentence are kept.  A hypothesis that ends makes its sentence's beam narrower by one.  Of the hypotheses that
// ended or were cut at max_length, the one with the best mean over its words is the answer.  Ties are broken by the
// rank of the previous hypothesis, then by the smaller word number.  <pad> and <sos> are never generated.
std::vector<std::vector<int32_t>> BeamSearch(StepDecoder& decoder, const SearchOptions& options);

// Returns the answers to sentences, both as word numbers without marks.  An answer depends only on its own sentence,
// not on the other sentences in the list.
std::vector<std::vector<int32_t>> Translate(Net& net, ConstArena weights, ConstArena state,
                                            const std::vector<std::vector<int32_t>>& sentences,
                                            const SearchOptions& options);

// Returns the BLEU counts of this rank's part of a split; none if the net has no decoder or the data set is not text.
BleuCounts TranslateSplit(Net& net, const Dataset& dataset, Split split, ConstArena weights,
                          ConstArena state, int rank, int ranks, const SearchOptions& options = {});

// All ranks call it at a boundary, and all get the sum.
BleuCounts JoinCounts(Transport& transport, const BleuCounts& mine);

}  // namespace dtrain
