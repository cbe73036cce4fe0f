// Checkpoints from the disk, none of whose bytes can crash the program.
//
// A file is copied into memory once, and what was checked there is what is read.  A sealed one
// (checkpoint_seal.h) goes to HDF5 only when its seal is right.  An older one is read by a child
// process (child_call.h), which hands over what it found in our own words: this process never lets
// HDF5 parse bytes without a seal.  Anything else is refused.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "framework/runtime/weights/checkpoint.h"

namespace dtrain {

class Hdf5Builder;
class Hdf5Reader;

struct StoredCheckpoint {
  CheckpointInfo info;
  ModelLayout layout;  // in the order of the file; scalars are [1], text is empty
  std::vector<float> weights;
  std::vector<float> state;
  std::map<std::string, std::vector<float>> solver;  // laid out as the weights
};

// How much of a file is read.
enum class CheckpointPart {
  kInfo,   // info alone
  kModel,  // layout, weights and state, too
  kAll     // and the solver's vectors
};

// Throws CheckpointError with the path: it cannot be opened, is damaged, is a newer program's, or
// is not a checkpoint.
StoredCheckpoint ReadStoredCheckpoint(const std::filesystem::path& path, CheckpointPart part);

// What stands in a checkpoint's HDF5 file (checkpoint.h says what, and how it is kept from damage),
// written and read with no model at hand: checkpoint_content.cc.
//
// Formats, as /run says.  The first one was written until 2026-11: it has no seal and no lists of
// names.
enum class CheckpointFormat : int64_t { kWithoutSeal = 1, kSealed = 2 };

void WriteContent(Hdf5Builder& out, const CheckpointView& view);

// Data sets are opened by the names that the file lists; only of a file without a seal are they
// looked for.  Throws CheckpointError for all that is not as this format should be.
StoredCheckpoint ReadContent(const Hdf5Reader& in, CheckpointFormat format, CheckpointPart part);

}  // namespace dtrain
