#include "framework/train/step_count.h"

#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/checkpoint/weights_file.h"
#include "framework/core/error.h"
#include "framework/exchange/boundary_schedule.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

BoundarySchedule RuleOf(const StepCount& count) {
  return {.epoch_samples = count.epoch_samples, .batch = count.batch, .step_offset = count.offset};
}

// True if the checkpoint is at the end of an epoch.  An asynchronous run that did not pause for it may have applied less
// than a batch of the next one.
bool EndsEpoch(const TrainingPosition& position, const StepCount& count) {
  return count.at_epoch_end || position.samples_applied % count.epoch_samples < count.batch;
}

// Returns the newest checkpoint beside this one that is at the end of an epoch; "" if there is none.
std::string EpochEndBeside(const fs::path& checkpoint) {
  for (const fs::path& file : CheckpointFolder(checkpoint.parent_path(), 1).List()) {
    try {
      const CheckpointInfo info = ReadStoredInfo(file);
      if (EndsEpoch(info.position, SoFarOf(info, file.string()).steps)) return file.string();
    } catch (const CheckpointError&) {  // others are skipped
    }
  }
  return "";
}

[[noreturn]] void RefuseBatch(const Checkpoint& checkpoint, const BoundarySchedule& before,
                              int64_t batch) {
  const TrainingPosition& position = checkpoint.info.position;
  const std::string other = EpochEndBeside(checkpoint.path);
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

RunSoFar SoFarOf(const CheckpointInfo& info, const std::string& file) {
  RunSoFar so_far = RunSoFarFrom(info.so_far);
  if (so_far.whole) return so_far;
  throw CheckpointError(
      fmt::format("{} cannot be resumed: revision {} of dtrain wrote it, before the first release, "
                  "without the run's count of steps or its evaluations",
                  file, info.source_revision),
      "resume it with that program, or start a new run from its weights with --weights");
}

int64_t StepOffsetOf(const Checkpoint& checkpoint, const RunConfig& config, int64_t train_samples) {
  const TrainingPosition& position = checkpoint.info.position;
  const StepCount count = SoFarOf(checkpoint.info, checkpoint.path.string()).steps;
  const BoundarySchedule before = RuleOf(count);
  if (before.epoch_samples != train_samples) {
    throw CheckpointError(
        fmt::format("{} was trained on {} samples, now there are {}", checkpoint.path.string(),
                    before.epoch_samples, train_samples),
        "resume with the data set of the run that wrote it, or start a new run from its weights "
        "with --weights");
  }
  const int64_t expected = before.SamplesOf(position.step);
  const bool fits = config.strategy->traits().lockstep
                        ? position.samples_applied == expected
                        : before.StepsOf(position.samples_applied) == position.step;
  if (!fits) {
    throw CheckpointError(
        fmt::format("the checkpoint's step {} had applied {} samples, here it would be {}",
                    position.step, position.samples_applied, expected),
        "resume with the batch and the data set of the run that wrote it");
  }
  if (before.batch == config.batch) return before.step_offset;
  if (!EndsEpoch(position, count)) RefuseBatch(checkpoint, before, config.batch);
  const BoundarySchedule now{.epoch_samples = train_samples, .batch = config.batch};
  return position.step - position.samples_applied / train_samples * now.steps_per_epoch();
}

}  // namespace dtrain
