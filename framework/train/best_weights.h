// The weights of a run's best evaluation (checkpoint.keep_best), for the test at its end.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "framework/checkpoint/checkpoint.h"
#include "framework/core/bytes.h"
#include "framework/device/arena.h"
#include "framework/results/summary.h"

namespace dtrain {

struct BestWeights {
  int64_t step = -1;  // -1: there are no best weights
  std::vector<float> weights;
  std::vector<float> state;
  DTRAIN_FIELDS(step, weights, state)

  // Returns these weights and states, or `others` if there are no best weights.
  std::pair<ConstArena, ConstArena> Or(ConstArena others, ConstArena others_state) const {
    if (step < 0) return {others, others_state};
    return {weights.data(), state.data()};
  }
};

// Reads the `file` of the weights of a run's best evaluation, for a model of this layout.  Warns, and returns none, if it
// is missing or does not have the weights of `best`, for example in a run that keeps them only since a resume after it.
BestWeights ReadBest(const std::filesystem::path& file, const std::optional<BestResult>& best,
                     const ModelLayout& layout);

// Makes sure that the `file` of a resumed run has the weights of its best evaluation so far.  If it has others (the run
// goes on in another folder, or from a checkpoint that is not the last one), copies the right ones from the folder of
// `checkpoint`.  If they are not there either, prints a warning: `file` is then written at the next evaluation that is
// better than `best`.
void BringBest(const std::filesystem::path& file, const std::filesystem::path& checkpoint,
               const BestResult& best);

}  // namespace dtrain
