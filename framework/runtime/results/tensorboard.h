// TensorBoardWriter: what metrics.jsonl says of a run's steps and evaluations, for TensorBoard.
//
//   train/loss  train/learning_rate  train/samples_per_second  train/exposed_seconds
//   test/loss   test/accuracy, and whatever else an evaluation gives; validation/... of that split
//
// Each start of a run writes a file of its own, events.out.tfevents.<seconds>.<host>.<pid>, in the order of
// whose names TensorBoard reads them.  A resumed run voids what was written behind the checkpoint that it
// goes on from, so that no step appears twice; a fresh one removes the files of the run before.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "framework/runtime/results/event_file.h"
#include "framework/runtime/results/metrics.h"

namespace dtrain {

// Rank 0 has one.
class TensorBoardWriter {
 public:
  // Throw RunFileError when the folder or a file in it cannot be written.
  explicit TensorBoardWriter(const std::filesystem::path& folder,
                             std::optional<int64_t> resumed_step = std::nullopt);

  void Write(const StepMetrics& metrics);
  void Write(const EvaluationMetrics& metrics);

 private:
  EventFile file_;
};

}  // namespace dtrain
