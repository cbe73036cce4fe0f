// Reads checkpoint files safely: no content of a file can crash the program.
//
// A file is copied into memory once, so the bytes that are read are those that were checked.  HDF5 parses a sealed file
// (checkpoint_seal.h) only if its seal matches.  An older file without a seal is parsed in a child process
// (child_call.h), which returns the content in dtrain's own format.  Anything else is refused.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "framework/checkpoint/checkpoint.h"

namespace dtrain {

class Hdf5Builder;
class Hdf5Reader;

struct StoredCheckpoint {
  CheckpointInfo info;
  // The layout has the order of the file; scalars have the shape [1], and `text` is empty.
  ModelLayout layout;
  std::vector<float> weights;
  std::vector<float> state;
  std::map<std::string, std::vector<float>> solver;  // laid out as the weights
};

// Lists the parts of a file that can be read.
enum class CheckpointPart {
  kInfo,   // only `info`
  kModel,  // also layout, weights and state
  kAll     // also the solver's vectors
};

// Throws CheckpointError with the path if the file cannot be opened, is damaged, was written by a newer program, or is
// not a checkpoint.
StoredCheckpoint ReadStoredCheckpoint(const std::filesystem::path& path, CheckpointPart part);

// The HDF5 content of a checkpoint (checkpoint.h describes it), written and read without a model:
// checkpoint_content.cc.
//
// The format number in /run.  Files of the first format were written until 2026-11; they have no seal and no lists of
// names.
enum class CheckpointFormat : int64_t { kWithoutSeal = 1, kSealed = 2 };

void WriteContent(Hdf5Builder& out, const CheckpointView& view);

// Opens data sets by the names that the file lists; only in a file without a seal does it search for names.  Throws
// CheckpointError for every deviation from the format.
StoredCheckpoint ReadContent(const Hdf5Reader& in, CheckpointFormat format, CheckpointPart part);

}  // namespace dtrain
