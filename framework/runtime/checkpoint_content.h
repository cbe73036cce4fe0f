// What stands in a checkpoint's HDF5 file (checkpoint.h says what, and how it is kept from damage),
// written and read with no model at hand.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "framework/runtime/checkpoint.h"
#include "framework/runtime/hdf5_file.h"

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

// Formats, as /run says.  The first one was written until 2026-11: it has no seal and no lists of
// names.
enum class CheckpointFormat : int64_t { kWithoutSeal = 1, kSealed = 2 };

void WriteContent(Hdf5Builder& out, const CheckpointView& view);

// Data sets are opened by the names that the file lists; only of a file without a seal are they
// looked for.  Throws CheckpointError for all that is not as this format should be.
StoredCheckpoint ReadContent(const Hdf5Reader& in, CheckpointFormat format, CheckpointPart part);

}  // namespace dtrain
