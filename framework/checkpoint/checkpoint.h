// Checkpoints: one HDF5 file with everything that a run needs to continue, to the bit.
//
//   /model/<parameter>            fp32, shaped, in plain order (PyTorch's)
//   /solver/<vector>/<parameter>  momentum and the like, shaped as the parameter
//   /state/<name>                 batch-norm statistics (sample-weighted mean over the workers, or estimated anew)
//   /run                          attributes: format, position, seed, model, solver, revision;
//                                 data sets, stored as bytes:
//                                 config and model_yaml (YAML), plan (JSON);
//                                 text (TextInfo: the vocabularies), for translation;
//                                 images (image_set.h: the properties that all images share), for images;
//                                 parameters, state and solver_vectors: the names above, each ended by
//                                 a zero byte;
//                                 so_far (JSON), the state of the result files (results/run_so_far.h);
//                                 data_sha256, the hash of the training data, and train_sha256,
//                                 validation_sha256 and test_sha256, the hashes of the splits;
//                                 rank_files, the hashes of the rank files if there are any, in the
//                                 same form
//
// A seal of 512 bytes with the SHA-256 of the remaining bytes precedes the HDF5 content (checkpoint_seal.h); HDF5's own
// tools skip it.  HDF5 parses the content only if the seal matches, and opens data sets by the names in /run.
// Otherwise the library could crash on a damaged file, above all when it lists names.  Older files without seal and
// lists are read in a child process (stored_checkpoint.h).  Every data set has a Fletcher-32 checksum and HDF5's own
// structures have theirs (file format of version 1.10).  Checkpoint files do not depend on the number of workers; state
// that does is in rank files beside them (rank_checkpoint.h).
//
// A file is built in memory and then published at once (core/file.h), so a file under its final name is never
// incomplete, and disk errors have the system's own messages.  The cost is a second copy of the model while a
// checkpoint is written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "framework/core/error.h"
#include "framework/core/layout.h"
#include "framework/data/splits.h"
#include "framework/device/loss_scale.h"

namespace dtrain {

// CheckpointMismatch is thrown for an undamaged checkpoint of another model.  `what` names the first parameter that
// differs and both shapes.  ResumeFrom (checkpoint_folder.h) does not fall back to an older file then: it would not
// match either.
class CheckpointMismatch : public CheckpointError {
 public:
  using CheckpointError::CheckpointError;
};

// The position of a run: all steps up to and including `step` have been applied.
struct TrainingPosition {
  int64_t epoch = 0;  // finished epochs
  int64_t step = 0;   // finished steps
  int64_t samples_applied = 0;
  // Number of solver steps applied to the weights: `step` in synchronous runs, more on a server.
  int64_t updates = 0;
  LossScale loss_scale;  // of the next step, with `precision: fp16`
  friend bool operator==(const TrainingPosition&, const TrainingPosition&) = default;
};

// Holds all parts of a checkpoint that are not arenas.
struct CheckpointInfo {
  TrainingPosition position;
  uint64_t seed = 0;
  std::string model;        // name
  std::string solver;       // name
  std::string config_yaml;  // effective config
  std::string plan_json;    // ToJson(ExecutionPlan); "" in a file of weights alone
  std::string source_revision;
  std::string text;  // TextInfo::ToText of a model for translation
  // Holds the hash of each rank's file (rank_checkpoint.h), by rank; empty if there are no rank files.
  std::vector<std::string> rank_files = {};
  std::string images = {};      // ToText(ImageSetSpec) of a model for images; "": unknown
  std::string model_yaml = {};  // the model file's text; "": unknown
  std::string so_far = {};      // ToJson(RunSoFar); weights alone: none
  DataHashes data_hashes = {};  // Dataset::Hashes of its data; "": unknown
  friend bool operator==(const CheckpointInfo&, const CheckpointInfo&) = default;
};

// The shapes of a model's weights; a checkpoint must match them.
struct ModelLayout {
  ArenaLayout parameters;
  ArenaLayout state;            // empty if the model has no batch norm
  std::string text;             // TextInfo::ToText of its data; "": vocabularies are not compared
  std::string images = {};      // ToText(ImageSetSpec) of its data; not compared
  DataHashes data_hashes = {};  // Dataset::Hashes of its data; not compared; "": unknown
};

// Refers to the content that Save writes.  All pointers are borrowed; arenas are fp32 on the host, in the order of
// their layout.
struct CheckpointView {
  const CheckpointInfo& info;
  const ModelLayout& layout;
  const float* weights = nullptr;
  std::map<std::string, const float*> solver;  // vector name -> arena laid out as the weights
  const float* state = nullptr;                // may be null when layout.state is empty
};

// Holds the content that ResumeFrom and LoadWeights return.
struct Checkpoint {
  std::filesystem::path path;  // rank files are in the same folder
  CheckpointInfo info;
  std::vector<float> weights;
  std::map<std::string, std::vector<float>> solver;  // empty after LoadWeights
  std::vector<float> state;
};

// Writes one file, durably.  Throws CheckpointError with path and reason, for example a full disk; then an existing
// file of that name is unchanged, and no temporary file is left.
void WriteCheckpoint(const std::filesystem::path& path, const CheckpointView& view);

// Reads and verifies the whole file.  Throws CheckpointMismatch if it is of another model, and CheckpointError if it
// cannot be opened, is damaged or incomplete.
Checkpoint ReadCheckpoint(const std::filesystem::path& path, const ModelLayout& layout);

// Throws CheckpointMismatch if the layout has vocabularies and the file has others.  Word numbers of one vocabulary in
// a model of another would give wrong results without any error.
void CheckVocabularies(const std::filesystem::path& path, const CheckpointInfo& info,
                       const ModelLayout& layout);

// Reads the same without the solver's vectors.  LoadWeights of weights_file.h reads other formats too.
Checkpoint ReadWeights(const std::filesystem::path& path, const ModelLayout& layout);

// Returns an arena rearranged into the order of another layout, matched by name.  Throws CheckpointError, naming
// `origin`, if an entry is missing or has another size.
std::vector<float> Arranged(std::vector<float> values, const ArenaLayout& from,
                            const ArenaLayout& to, const std::string& origin);

// Returns the SHA-256 over all parameters and batch-norm statistics in name order, each as little-endian fp32 in plain
// order.  Arenas as in CheckpointView; `state` may be null if layout.state is empty.
std::string WeightsSha256(const ModelLayout& layout, const float* weights, const float* state);

}  // namespace dtrain
