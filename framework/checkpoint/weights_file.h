// Weight files in two formats: HDF5 checkpoints (checkpoint.h) and safetensors (safetensors.h).
//
// Names and axes are PyTorch's in both formats: an exported file loads with load_state_dict(strict=True) into the
// PyTorch model that a file of configs/models is named after, and vice versa.  A safetensors file has the batch-norm
// statistics beside the parameters, each with PyTorch's count `num_batches_tracked` (dtrain's step number), which is
// ignored on reading.  Its __metadata__ tells the origin of the weights: model, model_yaml, epoch, step,
// samples_applied, source_revision, text (vocabularies) and images (the properties that all images share).  It also has
// two hashes: file_sha256 (safetensors.h) and weights_sha256 (checkpoint.h).  A file with one of the hashes must have
// both, and both must match.  A file of another program has neither and is read unchecked.
//
// PyTorch's DistributedDataParallel and torch.compile put "module." and "_orig_mod." before every name.  A safetensors
// file whose names all begin so is read as if they did not, and the log says so, except where the model has such names.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "framework/checkpoint/stored_checkpoint.h"

namespace dtrain {

enum class WeightsFormat { kHdf5, kSafetensors };

// Returns "hdf5" or "safetensors".
std::string NameOf(WeightsFormat format);

// All that a file contains about a model, read without the model.
struct StoredWeights : StoredCheckpoint {  // for safetensors, `info` is read from the metadata
  WeightsFormat format = WeightsFormat::kHdf5;
};

// All throw CheckpointError as the readers of the formats do.
CheckpointInfo ReadStoredInfo(const std::filesystem::path& path);  // without the weights
StoredWeights ReadStoredWeights(const std::filesystem::path& path,
                                CheckpointPart part = CheckpointPart::kModel);
// Writes a file with weights only.  `train --weights` reads an HDF5 file of this kind; `--resume` refuses it with an
// explanation.
void WriteStoredWeights(const std::filesystem::path& path, WeightsFormat format,
                        const StoredWeights& stored);

// Reads weights and statistics of a file in either format for a model of this layout (`--weights`).  Throws
// CheckpointMismatch if they are of another model; for a safetensors file it lists every missing, unexpected or
// differently shaped name, with the nearest name that exists.  Throws CheckpointError if a weight is NaN or infinite.
// Weights made by PyTorch contain no vocabularies and are assumed to use those of the layout.
Checkpoint LoadWeights(const std::filesystem::path& path, const ModelLayout& layout);

// Copies the weights in the file to `weights` and `state`, arenas of `layout`.  Parameters and statistics of layers
// that match one of `except` (NameMatches) keep their values, even if the file has them; all others must be in the file
// with the same shape.  Throws CheckpointMismatch with every difference.  Returns the number of parameters left out.
int64_t CopyWeights(const std::filesystem::path& path, const ModelLayout& layout,
                    const std::vector<std::string>& except, float* weights, float* state);

}  // namespace dtrain
