// Checkpoints from the disk, none of whose bytes can crash the program.
//
// A file is copied into memory once, and what was checked there is what is read.  A sealed one
// (checkpoint_seal.h) goes to HDF5 only when its seal is right.  An older one is read by a child
// process (child_call.h), which hands over what it found in our own words: this process never lets
// HDF5 parse bytes without a seal.  Anything else is refused.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "framework/runtime/weights/checkpoint.h"

namespace dtrain {

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

}  // namespace dtrain
