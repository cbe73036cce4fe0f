// The checkpoints of a run: names, `latest`, keep-last-N, and where to resume.
//
//   checkpoints/step-00001832.h5          newest `keep` of them
//   checkpoints/step-00001832.rank-K.h5   beside it, where ranks have state of their own
//   checkpoints/best.h5                   weights alone, of the best evaluation (checkpoint.keep_best)
//   checkpoints/latest                    a text file with the name of the newest; moved last
//
// A step's rank files are written before its main file, which names their hashes: a step counts only
// with all of its files.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "framework/runtime/weights/checkpoint.h"

namespace dtrain {

std::string CheckpointName(int64_t step);  // "step-00001832.h5"
inline constexpr const char* kBestName = "best.h5";

class CheckpointFolder {
 public:
  // `folder` is <output>/checkpoints; it is made by the first Save.  `keep` >= 1.
  CheckpointFolder(std::filesystem::path folder, int keep);

  // The rank files are there.  Writes the main file, then `latest`, then removes what is older than the newest
  // `keep`, and what lies beyond this step (left by a run that was taken back to an earlier checkpoint); only files
  // with the very names that a run gives.  Returns the file's path.  Throws CheckpointError; the checkpoints before
  // stay good.
  std::filesystem::path Save(const CheckpointView& view) const;

  // Lists the checkpoints that exist, newest first; they may be corrupt.
  std::vector<std::filesystem::path> List() const;

 private:
  void RemoveAllBut(int64_t newest_step) const;
  void RemoveStrangers(const std::filesystem::path& main, size_t ranks) const;

  std::filesystem::path folder_;
  int keep_;
};

// `--resume`:
//   none   nothing
//   auto   the newest checkpoint of `folder` all of whose files are sound; a damaged one is passed over with a warning
//          that names it and its replacement; nothing when there is none
//   PATH   that checkpoint, or the newest of that run folder
// Throws CheckpointError when PATH cannot be used, or when every checkpoint is corrupt;
// CheckpointMismatch when the one to use is of another model.
std::optional<Checkpoint> ResumeFrom(const std::filesystem::path& folder, const std::string& how,
                                     const ModelLayout& layout);

// True where `--resume HOW` goes on with the checkpoints of this run folder: a PATH is the folder itself or lies in its
// checkpoints/.  Another PATH, also one of a run below this folder, begins a new run here, which must not bury or
// remove the checkpoints of an earlier one.
bool GoesOnIn(const std::filesystem::path& run_folder, const std::string& how);

// `--weights W`: a checkpoint file, a run folder or its checkpoints folder -> the checkpoint file
// (the one that `latest` names, else the newest).  Throws CheckpointError when there is none.
std::filesystem::path FindCheckpoint(const std::filesystem::path& where);
// Finds the weights for a command that uses a model and does not train it: a run's best ones, where it keeps them.
std::filesystem::path FindWeights(const std::filesystem::path& where);

}  // namespace dtrain
