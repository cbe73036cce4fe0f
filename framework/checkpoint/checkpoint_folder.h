// CheckpointFolder: the checkpoints of a run, with their names, the file `latest`, and which of them are kept.
//
//   checkpoints/step-00001832.h5          the newest `keep` checkpoints
//   checkpoints/step-00001832.rank-K.h5   rank files, if ranks have state of their own
//   checkpoints/best.h5                   only the weights of the best evaluation (checkpoint.keep_best)
//   checkpoints/latest                    a text file with the name of the newest; written last
//
// A step's rank files are written before its main file, which contains their hashes.  So a checkpoint is valid only
// together with all of its files.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "framework/checkpoint/checkpoint.h"

namespace dtrain {

std::string CheckpointName(int64_t step);  // "step-00001832.h5"
inline constexpr const char* kBestName = "best.h5";

class CheckpointFolder {
 public:
  // `folder` is <output>/checkpoints; the first Save creates it.  `keep` >= 1.
  CheckpointFolder(std::filesystem::path folder, int keep);

  // REQUIRES: the rank files have been written.  Writes the main file, then `latest`.  Then removes checkpoints older
  // than the newest `keep`, and those of later steps (from a run that was resumed at an earlier checkpoint); it removes
  // only files whose names a run gives.  Returns the path of the main file.  Throws CheckpointError; the earlier
  // checkpoints then stay valid.
  std::filesystem::path Save(const CheckpointView& view) const;

  // Returns the existing checkpoints, newest first; they may be corrupt.
  std::vector<std::filesystem::path> List() const;

 private:
  void RemoveAllBut(int64_t newest_step) const;
  void RemoveStrangers(const std::filesystem::path& main, size_t ranks) const;

  std::filesystem::path folder_;
  int keep_;
};

// Finds and reads the checkpoint that `--resume HOW` asks for:
//   none   nothing
//   auto   the newest checkpoint in `folder` whose files are all sound, or nothing if there are no checkpoints; a
//          damaged checkpoint is skipped with a warning that names it and the one used in its place
//   PATH   that checkpoint, or the newest of that run folder
// Throws CheckpointError if PATH cannot be used, or if every checkpoint is corrupt; CheckpointMismatch if the
// checkpoint to use is of another model.
std::optional<Checkpoint> ResumeFrom(const std::filesystem::path& folder, const std::string& how,
                                     const ModelLayout& layout);

// True if `--resume HOW` continues with the checkpoints of this run folder: HOW is auto, or PATH is the folder itself
// or in its checkpoints/.  Any other PATH, even one of a run below this folder, begins a new run here, which must not
// remove the checkpoints of an earlier one.
bool GoesOnIn(const std::filesystem::path& run_folder, const std::string& how);

// Resolves `--weights W`, which is a checkpoint file, a run folder or its checkpoints folder, to a checkpoint file (the
// one that `latest` names, otherwise the newest).  Throws CheckpointError if there is none.
std::filesystem::path FindCheckpoint(const std::filesystem::path& where);
// Finds the weights for a command that uses a model without training it: the best weights of a run if it keeps them.
std::filesystem::path FindWeights(const std::filesystem::path& where);

}  // namespace dtrain
