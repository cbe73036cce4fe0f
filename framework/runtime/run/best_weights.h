// The weights of a run's best evaluation (checkpoint.keep_best), for the test at its end.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "framework/core/bytes.h"
#include "framework/device/arena.h"
#include "framework/exchange/exchange.h"
#include "framework/runtime/results/summary.h"
#include "framework/runtime/setup/run_config.h"
#include "framework/runtime/weights/checkpoint.h"

namespace dtrain {

struct BestWeights {
  int64_t step = -1;  // -1: there are none
  std::vector<float> weights;
  std::vector<float> state;
  DTRAIN_FIELDS(step, weights, state)

  // These, or others where there are none.
  std::pair<ConstArena, ConstArena> Or(ConstArena others, ConstArena others_state) const {
    if (step < 0) return {others, others_state};
    return {weights.data(), state.data()};
  }
};

// What a split is evaluated with at the end of a run: for the test the best weights, where the config keeps them,
// else none, which are the last ones.  Collective, at a boundary: rank 0 reads `file` for a model of this layout.  Where that
// does not have the weights of the best evaluation, which was `best` (rank 0), as in a run that keeps them since it was
// resumed behind that, rank 0 says so.
BestWeights WeightsToTest(const RunConfig& config, Split split, Exchange& exchange,
                          const std::filesystem::path& file, const std::optional<BestResult>& best,
                          const ModelLayout& layout);

// Where a run is resumed: `file` is to have the weights of its best evaluation so far.  Where it has others, as in
// another folder or behind a checkpoint that was not the last one, they are copied from beside that `checkpoint`.  Where
// they are not there either a warning says so: `file` is written at the next evaluation that is better.
void BringBest(const std::filesystem::path& file, const std::filesystem::path& checkpoint,
               const BestResult& best);

}  // namespace dtrain
