// Rewrites the attributes of a run's newest checkpoint, as another program or another run would have written them.
#pragma once

#include <filesystem>
#include <functional>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/checkpoint/stored_checkpoint.h"

namespace dtrain {

inline void RewriteCheckpoint(const std::filesystem::path& run,
                              const std::function<void(CheckpointInfo&)>& change) {
  const std::filesystem::path path = FindCheckpoint(run.string());
  StoredCheckpoint stored = ReadStoredCheckpoint(path, CheckpointPart::kAll);
  change(stored.info);
  CheckpointView view{stored.info, stored.layout, stored.weights.data(), {}, stored.state.data()};
  for (const auto& [name, values] : stored.solver) view.solver[name] = values.data();
  WriteCheckpoint(path, view);
}

}  // namespace dtrain
