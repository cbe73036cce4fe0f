// TensorBoardWriter: writes the steps and evaluations of metrics.jsonl for TensorBoard.
//
//   train/loss  train/learning_rate  train/samples_per_second  train/exposed_seconds
//   test/loss   test/accuracy, and all other metrics of an evaluation; validation/... for that split
//
// Each start of a run writes its own file, events.out.tfevents.<seconds>.<host>.<pid>; TensorBoard reads the files in
// the order of their names.  A resumed run makes TensorBoard ignore the earlier entries after its checkpoint, so that
// no step appears twice.  A fresh run removes the files of the run before.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "framework/results/event_file.h"
#include "framework/results/metrics.h"

namespace dtrain {

// Only rank 0 has a writer.
class TensorBoardWriter {
 public:
  // All members throw RunFileError if the folder or a file in it cannot be written.
  explicit TensorBoardWriter(const std::filesystem::path& folder,
                             std::optional<int64_t> resumed_step = std::nullopt);

  void Write(const StepMetrics& metrics);
  void Write(const EvaluationMetrics& metrics);

 private:
  EventFile file_;
};

}  // namespace dtrain
