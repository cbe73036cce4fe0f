// What stands in a checkpoint's HDF5 file (checkpoint.h says what, and how it is kept from damage),
// written and read with no model at hand.
#pragma once

#include <cstdint>

#include "framework/runtime/weights/hdf5_file.h"
#include "framework/runtime/weights/stored_checkpoint.h"

namespace dtrain {

// Formats, as /run says.  The first one was written until 2026-11: it has no seal and no lists of
// names.
enum class CheckpointFormat : int64_t { kWithoutSeal = 1, kSealed = 2 };

void WriteContent(Hdf5Builder& out, const CheckpointView& view);

// Data sets are opened by the names that the file lists; only of a file without a seal are they
// looked for.  Throws CheckpointError for all that is not as this format should be.
StoredCheckpoint ReadContent(const Hdf5Reader& in, CheckpointFormat format, CheckpointPart part);

}  // namespace dtrain
