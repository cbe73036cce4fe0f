// A data set whose batches are made in a device's memory ahead of the step that needs them: from samples that are kept
// there (Dataset::KeepOn) if possible, else by copies from pinned memory.  Both use a separate queue, concurrently with
// the kernels of the current step.
#pragma once

#include <memory>
#include <vector>

#include "framework/data/dataset.h"
#include "framework/device/device.h"

namespace dtrain {

// Returns `whole` itself if the device works on host memory; else an equal set whose MakeBatch() makes batches on the
// device.
std::shared_ptr<const Dataset> OnDevice(std::shared_ptr<const Dataset> whole, const Device& device);

// Returns a copy of a batch of these fields in the device's memory.
Batch OnDevice(const Batch& batch, const std::vector<FieldSpec>& fields, const Device& device);

}  // namespace dtrain
