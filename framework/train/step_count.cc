#include "framework/train/step_count.h"

#include <algorithm>
#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/checkpoint/weights_file.h"
#include "framework/config/reader.h"
#include "framework/core/error.h"
#include "framework/exchange/boundary_schedule.h"
#include "framework/results/run_so_far.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

int64_t BatchIn(const std::string& yaml) {
  config::Document document = config::Document::FromText(yaml, "the checkpoint's config");
  return document.root().Int("batch", 0);
}

// Returns the step count of a checkpoint.  Older programs wrote the batch only into the config, and had no offset.
BoundarySchedule RuleOf(const CheckpointInfo& info, int64_t train_samples) {
  const StepCount count = RunSoFarFrom(info.so_far).steps;
  if (count.batch > 0 && count.epoch_samples > 0) {
    return {
        .epoch_samples = count.epoch_samples, .batch = count.batch, .step_offset = count.offset};
  }
  return {.epoch_samples = train_samples, .batch = std::max<int64_t>(BatchIn(info.config_yaml), 1)};
}

// True if the checkpoint is at the end of an epoch.  Older programs did not note the pause: then an asynchronous run
// may have applied less than a batch of the next epoch.
bool EndsEpoch(const CheckpointInfo& info, const BoundarySchedule& rule) {
  return RunSoFarFrom(info.so_far).steps.at_epoch_end ||
         info.position.samples_applied % rule.epoch_samples < rule.batch;
}

// Returns the newest checkpoint beside this one that is at the end of an epoch; "" if there is none.
std::string EpochEndBeside(const fs::path& checkpoint, const BoundarySchedule& rule) {
  for (const fs::path& file : CheckpointFolder(checkpoint.parent_path(), 1).List()) {
    try {
      const CheckpointInfo info = ReadStoredInfo(file);
      if (EndsEpoch(info, RuleOf(info, rule.epoch_samples))) return file.string();
    } catch (const CheckpointError&) {  // unreadable ones are skipped
    }
  }
  return "";
}

[[noreturn]] void RefuseBatch(const Checkpoint& checkpoint, const BoundarySchedule& before,
                              int64_t batch) {
  const TrainingPosition& position = checkpoint.info.position;
  const std::string other = EpochEndBeside(checkpoint.path, before);
  throw CheckpointError(
      fmt::format(
          "{} lies in the middle of epoch {}, which was begun with batch {}: only at the end "
          "of an epoch another batch ({}) may follow",
          checkpoint.path.string(), position.samples_applied / before.epoch_samples + 1,
          before.batch, batch),
      other.empty()
          ? fmt::format(
                "go on with batch {} to the end of the epoch first (checkpoint.every_epochs)",
                before.batch)
          : fmt::format("go on with batch {}, or from the end of an epoch: --resume {}",
                        before.batch, other));
}

}  // namespace

int64_t StepOffsetOf(const Checkpoint& checkpoint, const RunConfig& config, int64_t train_samples) {
  const TrainingPosition& position = checkpoint.info.position;
  const BoundarySchedule before = RuleOf(checkpoint.info, train_samples);
  if (before.epoch_samples != train_samples) {
    throw CheckpointError(
        fmt::format("{} was trained on {} samples, now there are {}", checkpoint.path.string(),
                    before.epoch_samples, train_samples),
        "resume with the data set of the run that wrote it, or start a new run from its weights "
        "with --weights");
  }
  const int64_t expected = before.SamplesOf(position.step);
  const bool fits = config.strategy->synchronous()
                        ? position.samples_applied == expected
                        : before.StepsOf(position.samples_applied) == position.step;
  if (!fits) {
    throw CheckpointError(
        fmt::format("the checkpoint's step {} had applied {} samples, here it would be {}",
                    position.step, position.samples_applied, expected),
        "resume with the batch and the data set of the run that wrote it");
  }
  if (before.batch == config.batch) return before.step_offset;
  if (!EndsEpoch(checkpoint.info, before)) RefuseBatch(checkpoint, before, config.batch);
  const BoundarySchedule now{.epoch_samples = train_samples, .batch = config.batch};
  return position.step - position.samples_applied / train_samples * now.steps_per_epoch();
}

}  // namespace dtrain
