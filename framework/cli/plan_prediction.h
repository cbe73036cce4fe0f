// What `dtrain plan` compares: every schedule with each compressor and each way to sum, in the model of
// MG-WFBP (strategies/sync/merging.h), beside what the config itself asks for.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "framework/cli/scenario.h"
#include "framework/strategies/sync/merging.h"

namespace dtrain {

// What is sent and how it is summed.
struct Way {
  std::string compressor;  // as asked for: "topk", "topk:density=0.001"; "" for none
  std::string collective,
      exchange;  // one of them is "": entries that are selected have an exchange

  std::string sums() const {
    return exchange.empty() ? "collective " + collective : "exchange " + exchange;
  }
  friend bool operator==(const Way&, const Way&) = default;
};

struct Prediction {
  std::string schedule;
  Way way;
  std::string compressor;         // its name; "" for none
  std::optional<double> density;  // of selections
  LayerGradients layer_gradients;
  std::vector<Range> buckets;
  bool measured = false;               // the times of its sums are the profile's
  std::vector<GroupSending> sendings;  // of each bucket
  double seconds = 0;
  double wfbp_seconds = 0;  // of wfbp in the same way

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
  std::vector<std::string> compressors;  // beside none; empty: the config's own
  std::vector<std::string> collectives;  // empty: all whose plan is known
  std::vector<std::string> exchanges;    // empty: all
};

struct Predictions {
  std::vector<Prediction> all;    // way by way, each with the schedules in their order
  std::optional<Prediction> own;  // the config's, where it is a schedule of all-reduces
};

// Throws UsageError or ConfigError for what cannot be planned.
Predictions PredictAll(const PlanOptions& options);

}  // namespace dtrain
