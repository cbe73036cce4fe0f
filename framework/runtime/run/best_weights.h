// The weights of a run's best evaluation (checkpoint.keep_best), for the test at its end.
#pragma once

#include <cstdint>
#include <filesystem>
#include <utility>
#include <vector>

#include "framework/core/bytes.h"
#include "framework/device/arena.h"
#include "framework/exchange/exchange.h"
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
// else none, which are the last ones.  Collective, at rest: rank 0 reads `file` for a model of this layout.  Where there
// is no such file, as in a run that keeps them since it was resumed behind its best evaluation, rank 0 says so.
BestWeights WeightsToTest(const RunConfig& config, Split split, Exchange& exchange,
                          const std::filesystem::path& file, const ModelLayout& layout);

}  // namespace dtrain
