#include "framework/train/best_weights.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/checkpoint/weights_file.h"
#include "framework/core/file.h"
#include "framework/core/log.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

// Returns the step of the weights in the file; none if it is missing or damaged.
std::optional<int64_t> StepOf(const fs::path& file) {
  try {
    if (fs::exists(file)) return ReadStoredInfo(file).position.step;
  } catch (const CheckpointError& error) {
    log::Warning("{}", error.what());
  }
  return std::nullopt;
}

}  // namespace

BestWeights ReadBest(const fs::path& file, const std::optional<BestResult>& best,
                     const ModelLayout& layout) {
  if (!fs::exists(file)) {
    log::Warning("there is no {}: the test is of the last weights", file.string());
    return {};
  }
  Checkpoint kept = LoadWeights(file, layout);
  const int64_t step = kept.info.position.step;
  if (best && best->step != step) {
    log::Warning(
        "{} has the weights of step {}, the best evaluation was at step {}: the test is of "
        "the last weights",
        file.string(), step, best->step.value_or(0));
    return {};
  }
  return {step, std::move(kept.weights), std::move(kept.state)};
}

void BringBest(const fs::path& file, const fs::path& checkpoint, const BestResult& best) {
  const std::optional<int64_t> kept = StepOf(file);
  if (kept == best.step) return;
  const fs::path other = checkpoint.parent_path() / kBestName;
  if (StepOf(other) == best.step) {
    MakeFolder(file.parent_path());
    WriteFileDurably(file, ReadFile(other));
    return;
  }
  const std::string has =
      kept ? fmt::format("{} has those of step {}, and", file.string(), *kept) : file.string();
  log::Warning(
      "the weights of the best evaluation (step {}) are gone: {} is written at the next one "
      "that is better",
      best.step.value_or(0), has);
}

}  // namespace dtrain
