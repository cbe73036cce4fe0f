// Checkpoints from the disk, none of whose bytes can crash the program.
//
// A file is copied into memory once, and what was checked there is what is read.  A sealed one
// (checkpoint_seal.h) goes to HDF5 only when its seal is right.  An older one is read by a child
// process (child_call.h), which hands over what it found in our own words: this process never lets
// HDF5 parse bytes without a seal.  Anything else is refused.
#pragma once

#include <filesystem>

#include "framework/runtime/checkpoint_content.h"

namespace dtrain {

// Throws CheckpointError with the path: it cannot be opened, is damaged, or is no checkpoint.
StoredCheckpoint ReadStoredCheckpoint(const std::filesystem::path& path, CheckpointPart part);

}  // namespace dtrain
