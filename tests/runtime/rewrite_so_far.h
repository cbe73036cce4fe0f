// Puts other words into the newest checkpoint of a run: what its files go on with (results/run_so_far.h).
#pragma once

#include <filesystem>
#include <string>

#include "framework/runtime/results/run_so_far.h"
#include "framework/runtime/weights/checkpoint_folder.h"
#include "framework/runtime/weights/stored_checkpoint.h"

namespace dtrain {

inline void RewriteSoFar(const std::filesystem::path& run, const std::string& so_far) {
  const std::filesystem::path path = FindCheckpoint(run.string());
  StoredCheckpoint stored = ReadStoredCheckpoint(path, CheckpointPart::kAll);
  stored.info.so_far = so_far;
  CheckpointView view{stored.info, stored.layout, stored.weights.data(), {}, stored.state.data()};
  for (const auto& [name, values] : stored.solver) view.solver[name] = values.data();
  WriteCheckpoint(path, view);
}

}  // namespace dtrain
