// Weights as files, in either format: HDF5 checkpoints (checkpoint.h) and safetensors
// (safetensors.h).
//
// Names and axes are PyTorch's in both: what is exported loads with load_state_dict(strict=True)
// into the PyTorch model that a file of configs/models is named after, and the other way round.  In
// a safetensors file batch-norm statistics lie beside the parameters, each with PyTorch's count
// `num_batches_tracked` (our steps), which is ignored when read; where the weights come from stands
// in __metadata__ (model, model_yaml, epoch, step, samples_applied, source_revision; text: vocabularies;
// images: what all images share), with
// two hashes: file_sha256 (safetensors.h) and weights_sha256 (checkpoint.h).  A file with one of
// them must have both, and they must be right; one from elsewhere has neither, and is taken as it
// is.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "framework/runtime/weights/stored_checkpoint.h"

namespace dtrain {

enum class WeightsFormat { kHdf5, kSafetensors };

// "hdf5", "safetensors".
std::string NameOf(WeightsFormat format);

// Everything a file says about a model, with no model at hand.
struct StoredWeights : StoredCheckpoint {  // info of a safetensors file: what its metadata tells
  WeightsFormat format = WeightsFormat::kHdf5;
};

// All throw CheckpointError as the formats' readers do.
CheckpointInfo ReadStoredInfo(const std::filesystem::path& path);  // without the weights
StoredWeights ReadStoredWeights(const std::filesystem::path& path,
                                CheckpointPart part = CheckpointPart::kModel);
// A written HDF5 file holds weights alone: `train --weights` takes it, `--resume` says why it does
// not.
void WriteStoredWeights(const std::filesystem::path& path, WeightsFormat format,
                        const StoredWeights& stored);

// The weights and statistics of a file of either format, for the model of this layout
// (`--weights`).  Throws CheckpointMismatch when they are of another one; of a safetensors file it
// lists every name that is missing, not wanted or shaped differently, with the nearest name that
// is.  Weights made in PyTorch bring no vocabularies: they are taken for those of the layout.
Checkpoint LoadWeights(const std::filesystem::path& path, const ModelLayout& layout);

// Copies what the file has into `weights` and `state`, arenas of `layout`.  Parameters and statistics of layers that
// match one of `except` (NameMatches) keep what they have, whatever the file has of them; all others must be
// there, of the same shape.  Throws CheckpointMismatch with every difference.  How many parameters were left out.
int64_t CopyWeights(const std::filesystem::path& path, const ModelLayout& layout,
                    const std::vector<std::string>& except, float* weights, float* state);

}  // namespace dtrain
