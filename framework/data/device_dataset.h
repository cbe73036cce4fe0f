// A data set whose batches are made in a device's memory, ahead of the step that wants them: of samples
// that are kept there (Dataset::KeepOn), where it has such and they fit, else copied from pinned memory.
// Either is asked for in a queue of its own, beside the kernels of the step at hand.
#pragma once

#include <memory>

#include "framework/data/dataset.h"
#include "framework/device/device.h"

namespace dtrain {

// `whole` itself where the device works on everybody's memory.  Else one that is equal to it but for
// MakeBatch(): batches made with it lie on the device.
std::shared_ptr<const Dataset> OnDevice(std::shared_ptr<const Dataset> whole, const Device& device);

}  // namespace dtrain
