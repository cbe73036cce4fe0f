// EvaluateConfig and StopConfig: when a run is evaluated, and which evaluations end it early (config sections `evaluate`
// and `stop`).
#pragma once

#include <cstdint>
#include <string>

#include "framework/config/reader.h"

namespace dtrain {

struct EvaluateConfig {
  int64_t every_epochs = 1;  // 0: not by epochs
  int64_t every_steps = 0;   // 0: not by steps
  // Source of the batch-norm statistics of the model at a boundary: "mean", "estimate" or "auto" (ReadEvaluateConfig).
  std::string statistics = "auto";
  int64_t statistics_samples = 0;  // training samples of an estimate
};

// A run may end before its last epoch: at the first evaluation that reaches `target`, or after `patience` evaluations
// in a row of which neither the measure (accuracy, else perplexity) nor the loss was better than the best before.
struct StopConfig {
  double target = 0;     // accuracy; else perplexity of sentences, or loss; 0: none
  int64_t patience = 0;  // 0: patience is unlimited
  bool any() const { return target > 0 || patience > 0; }
};

// These read all keys of their section.  Errors are added to the reader's document; one of them is a stop that no
// evaluation can cause, by `when`, the section `evaluate`.
EvaluateConfig ReadEvaluateConfig(config::Reader reader);
StopConfig ReadStopConfig(config::Reader reader, const EvaluateConfig& when,
                          config::Reader evaluate);

}  // namespace dtrain
