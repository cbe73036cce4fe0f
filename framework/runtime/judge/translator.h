// Translation with a net that has a decoder (nn/step_decoder.h).
#pragma once

#include <cstdint>
#include <vector>

#include "framework/comm/transport.h"
#include "framework/data/text/bleu.h"
#include "framework/data/text/sentence_pairs.h"
#include "framework/nn/net.h"
#include "framework/runtime/judge/beam_search.h"

namespace dtrain {

// Answers to sentences of word numbers without marks.  An answer depends on its own sentence alone,
// not on those beside it.
std::vector<std::vector<int32_t>> Translate(Net& net, const float* weights, const float* state,
                                            const std::vector<std::vector<int32_t>>& sentences,
                                            const SearchOptions& options);

// BLEU counts of this rank's part of a split; nothing for a net without a decoder, or for a set
// that is no text.
BleuCounts TranslateSplit(Net& net, const Dataset& dataset, Split split, const float* weights,
                          const float* state, int rank, int ranks,
                          const SearchOptions& options = {});

// All ranks call it at rest; all get the sum.
BleuCounts JoinCounts(Transport& transport, const BleuCounts& mine);

}  // namespace dtrain
