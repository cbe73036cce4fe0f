// CheckpointConfig and WeightsConfig: which checkpoints a run writes, and the weights with which it begins (config
// sections `checkpoint` and `weights`).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/config/reader.h"

namespace dtrain {

struct CheckpointConfig {
  int64_t every_epochs = 1;  // 0: no checkpoints by epochs
  int64_t every_steps = 0;   // 0: no checkpoints by steps
  int64_t keep = 2;
  bool keep_best = false;         // best by the validation split; used for the final test
  bool takes_other_data = false;  // accept other data on resume, with a warning; else refuse
};

// The weights with which the run begins, instead of drawn ones.
struct WeightsConfig {
  std::string from;  // a run folder, checkpoint or safetensors file; "": none
  // Layers, by name or pattern, that are initialised anew nevertheless.
  std::vector<std::string> except;
  std::vector<std::string> freeze;  // layers whose parameters and state are not trained
};

// These read all keys of their section.  Errors are added to the reader's document.
CheckpointConfig ReadCheckpointConfig(config::Reader reader);
WeightsConfig ReadWeightsConfig(config::Reader reader);

}  // namespace dtrain
