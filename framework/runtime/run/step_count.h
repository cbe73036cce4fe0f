// Decides how a run that is resumed goes on counting its steps.
//
// A step is a global batch, so that its number says which samples it had only with the batch and the training set of
// the run.  A checkpoint carries both.  At the end of an epoch all samples of whole epochs are applied, and the next
// epoch may have batches of another size: numbers of steps go on from there (BoundarySchedule::step_offset).
#pragma once

#include <cstdint>

#include "framework/runtime/setup/run_config.h"
#include "framework/runtime/weights/checkpoint.h"

namespace dtrain {

// Returns BoundarySchedule::step_offset for a run of this config with so many training samples that goes on from the
// checkpoint.  Throws CheckpointError where it was written with another training set, or with another batch and not at
// the end of an epoch: then the error names a checkpoint beside it that was.  An asynchronous run is at the end of an
// epoch where it paused for that; the steps that were started while it came to a boundary are of the next one, and may come
// to several batches.
int64_t StepOffsetOf(const Checkpoint& checkpoint, const RunConfig& config, int64_t train_samples);

}  // namespace dtrain
