// Makes the predictions behind `dtrain plan`: every schedule with each compressor and each collective or exchange, by
// the time model of MG-WFBP (strategies/sync/merging.h), and in addition the schedule that the config itself names.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "framework/cli/scenario.h"
#include "framework/strategies/sync/merging.h"

namespace dtrain {

// Names the compressor of the gradients and the collective or exchange that sums them.
struct Way {
  std::string compressor;  // as given: "topk", "topk:density=0.001"; "" for none
  // One of these two is "": `exchange` is for gradients sparsified by a compressor, `collective` for all others.
  std::string collective, exchange;

  std::string sums() const {
    return exchange.empty() ? "collective " + collective : "exchange " + exchange;
  }
  friend bool operator==(const Way&, const Way&) = default;
};

struct Prediction {
  std::string schedule;
  Way way;
  std::string compressor;         // its registered name; "" for none
  std::optional<double> density;  // of sparsified gradients
  LayerGradients layer_gradients;
  std::vector<Range> buckets;
  bool measured = false;               // the all-reduce times are measured ones of the profile
  std::vector<GroupSending> sendings;  // one entry for each bucket
  double seconds = 0;                  // predicted time of a step
  double wfbp_seconds = 0;             // predicted time of a step with wfbp and the same Way

  std::string name() const {
    return way.compressor.empty() ? schedule : schedule + "+" + way.compressor;
  }
  double compute() const { return layer_gradients.ready.back(); }
  double exposed() const { return std::max(0.0, seconds - compute()); }
};

struct PlanOptions {
  ScenarioOptions scenario;
  std::vector<std::string> schedules = {"naive",     "wfbp",   "single",
                                        "allreduce", "mgwfbp", "mgwfbp:rule=published"};
  std::vector<std::string> compressors;  // in addition to none; empty: only the config's own
  std::vector<std::string> collectives;  // empty: all with a known CollectiveSchedule
  std::vector<std::string> exchanges;    // empty: all
};

struct Predictions {
  std::vector<Prediction> all;    // grouped by Way; the schedules in the order of PlanOptions
  std::optional<Prediction> own;  // the config's own, if its schedule uses all-reduces
};

// Throws UsageError or ConfigError if the config or an option cannot be planned.
Predictions PredictAll(const PlanOptions& options);

}  // namespace dtrain
