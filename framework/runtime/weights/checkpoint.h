// Checkpoints: one HDF5 file that holds all a run needs to go on, to the bit.
//
//   /model/<parameter>            fp32, shaped, plain order (PyTorch's)
//   /solver/<vector>/<parameter>  momentum and the like, shaped as the parameter
//   /state/<name>                 batch-norm statistics (sample-weighted mean over the workers)
//   /run                          attributes: format, position, seed, model, solver, revision;
//                                 datasets config and model_yaml (YAML), plan (JSON) and, for translation,
//                                 text (the vocabularies, TextInfo), for images what all of them share
//                                 (images, image_set.h), as bytes; parameters, state and
//                                 solver_vectors: the names above, each ended by a zero byte;
//                                 so_far (JSON), what its files go on with (results/run_so_far.h);
//                                 data_sha256, of the data that it was trained on, and
//                                 train_sha256, validation_sha256 and test_sha256, of their splits;
//                                 rank_files, where there are any: their hashes, in the same form
//
// In front of the HDF5 file lies a seal of 512 bytes with the SHA-256 of the rest
// (checkpoint_seal.h), which HDF5's own tools skip.  HDF5 is given the bytes only when they are
// those that were written, and data sets are opened by the names in /run: on damaged files the
// library crashes, above all where it lists names.  Older files, without seal and lists, are read
// in a process of their own (stored_checkpoint.h).  Every dataset carries a Fletcher-32 checksum
// and HDF5's own structures carry theirs (file format of version 1.10).  Files are portable: they
// do not depend on the number of workers.  What does lies beside them (rank_checkpoint.h).
//
// A file is built in memory and published at once (core/file.h), so there is never a half-written
// checkpoint under its final name, and errors of the disk come with the system's own words.
// The cost is a second copy of the model while a checkpoint is written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "framework/core/error.h"
#include "framework/core/layout.h"
#include "framework/data/splits.h"

namespace dtrain {

// A sound checkpoint, but of another model: `what` names the first parameter that differs and both
// shapes.  An older file would not help, so ResumeFrom (checkpoint_folder.h) does not fall back.
class CheckpointMismatch : public CheckpointError {
 public:
  using CheckpointError::CheckpointError;
};

// TrainingPosition tells where a run stands: everything up to and including `step` has been applied.
struct TrainingPosition {
  int64_t epoch = 0;  // finished epochs
  int64_t step = 0;   // finished steps
  int64_t samples_applied = 0;
  // Solver steps that the weights have had: `step` in synchronous runs, a server's more.
  int64_t updates = 0;
  friend bool operator==(const TrainingPosition&, const TrainingPosition&) = default;
};

// The part of a checkpoint that is not an arena.
struct CheckpointInfo {
  TrainingPosition position;
  uint64_t seed = 0;
  std::string model;        // name
  std::string solver;       // name
  std::string config_yaml;  // effective config
  std::string plan_json;    // ToJson(ExecutionPlan); "" in a file of weights alone
  std::string source_revision;
  std::string text;  // TextInfo::ToText of a model for translation
  // The hash of each rank's file (rank_checkpoint.h), by rank; empty where there are none.
  std::vector<std::string> rank_files = {};
  std::string images = {};      // ToText(ImageSetSpec) of a model for images; older files: none
  std::string model_yaml = {};  // the model file's text; older files: none
  std::string so_far = {};      // ToJson(RunSoFar); older files, and weights alone: none
  DataHashes data_hashes = {};  // Dataset::Hashes of its data; older files know less or none
  friend bool operator==(const CheckpointInfo&, const CheckpointInfo&) = default;
};

// ModelLayout tells what the weights of a model look like; a checkpoint must fit it.
struct ModelLayout {
  ArenaLayout parameters;
  ArenaLayout state;  // empty where the model has no batch norm
  std::string text;   // TextInfo::ToText of its data; empty: the vocabularies are not compared
  std::string images = {};      // ToText(ImageSetSpec) of its data, which is not compared
  DataHashes data_hashes = {};  // Dataset::Hashes of its data, not compared; "": not known
};

// CheckpointView is written by Save.  It borrows everything; arenas are fp32 on the host, in the order of their layout.
struct CheckpointView {
  const CheckpointInfo& info;
  const ModelLayout& layout;
  const float* weights = nullptr;
  std::map<std::string, const float*> solver;  // vector name -> arena laid out as the weights
  const float* state = nullptr;                // may be null when layout.state is empty
};

// Checkpoint is returned by Load.
struct Checkpoint {
  std::filesystem::path path;  // where rank files lie beside it
  CheckpointInfo info;
  std::vector<float> weights;
  std::map<std::string, std::vector<float>> solver;  // empty after LoadWeights
  std::vector<float> state;
};

// Writes one file, durably.  Throws CheckpointError with path and reason (a full disk included),
// leaving an older file of that name as it was and no temporary one behind.
void WriteCheckpoint(const std::filesystem::path& path, const CheckpointView& view);

// Reads and verifies all of it.  Throws CheckpointMismatch when it is of another model,
// CheckpointError when it cannot be opened, is damaged or lacks a part.
Checkpoint ReadCheckpoint(const std::filesystem::path& path, const ModelLayout& layout);

// Throws CheckpointMismatch unless the file's vocabularies are those of the layout (where it has
// any): numbers of other words would go in, and come out, without any other sign of it.
void CheckVocabularies(const std::filesystem::path& path, const CheckpointInfo& info,
                       const ModelLayout& layout);

// Does the same without the solver's vectors (LoadWeights of weights_file.h takes other formats too).
Checkpoint ReadWeights(const std::filesystem::path& path, const ModelLayout& layout);

// An arena in the order of another layout, by name.  Throws CheckpointError, naming `origin`, for an entry that is
// missing or has another size.
std::vector<float> Arranged(std::vector<float> values, const ArenaLayout& from,
                            const ArenaLayout& to, const std::string& origin);

// SHA-256 over all parameters and batch-norm statistics in name order, each as little-endian fp32
// in plain order.  Arenas as in CheckpointView; `state` may be null when layout.state is empty.
std::string WeightsSha256(const ModelLayout& layout, const float* weights, const float* state);

}  // namespace dtrain
