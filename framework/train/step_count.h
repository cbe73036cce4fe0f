// Decides how a resumed run counts its steps.
//
// A step is a global batch, so its number determines its samples only together with the batch and the training set of
// the run.  A checkpoint carries both.  At the end of an epoch exactly the samples of whole epochs have been applied,
// so the next epoch may have batches of another size: the step numbers continue from there
// (BoundarySchedule::step_offset).
#pragma once

#include <cstdint>
#include <string>

#include "framework/checkpoint/checkpoint.h"
#include "framework/results/run_so_far.h"
#include "framework/setup/run_config.h"

namespace dtrain {

// Returns what the checkpoint's run goes on with.  Throws CheckpointError, naming `file` and the revision of dtrain that
// wrote it, if it lacks a part of that: revisions before the first release did not write all of it.
RunSoFar SoFarOf(const CheckpointInfo& info, const std::string& file);

// Returns BoundarySchedule::step_offset for a run of this config, with `train_samples` training samples, that goes on
// from the checkpoint.  Throws CheckpointError if the checkpoint was written with another training set, or with another
// batch and not at the end of an epoch; the error then names a checkpoint beside it that is at the end of one.  An
// asynchronous run counts as being at the end of an epoch if it paused for that: the steps that workers began before
// they reached the boundary belong to the next epoch, and may add up to several batches.
int64_t StepOffsetOf(const Checkpoint& checkpoint, const RunConfig& config, int64_t train_samples);

}  // namespace dtrain
