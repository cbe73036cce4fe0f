// Compares the data that weights were trained on, as their file knows them, with the data of a run or an evaluation
// that goes on with them: columns, classes, mean and deviation, whatever else images share, and the samples
// themselves.
//
// A fact that either side does not know is not compared: files of older programs and weights from elsewhere lack
// some or all of them.  Vocabularies are compared when a file is read (CheckVocabularies).
#pragma once

#include <string>

#include "framework/data/dataset.h"
#include "framework/runtime/setup/run_config.h"
#include "framework/runtime/weights/checkpoint.h"

namespace dtrain {

// A mean or deviation of `data` that was measured becomes that of the weights; one that a key of the config gives
// stays.  Returns a line that says so, "" where they are the same.  `weights`: the file, for messages.
std::string NormaliseAsTrained(const CheckpointInfo& info, const std::string& weights,
                               Dataset& data);

// An evaluation calls this after NormaliseAsTrained.  Throws DataError where weights were trained on the columns of a
// table in another order, or on others: they would be taken for each other.  Warns (`tell`) where classes have other
// names, and where image files are decoded with another `fit` or `orientation`.
void CheckTrainedOn(const CheckpointInfo& info, const std::string& weights, const Dataset& dataset,
                    bool tell);

// A run that is resumed calls this after NormaliseAsTrained.  Throws CheckpointMismatch with all differences, the
// checkpoint's value and today's; with `checkpoint.other_data: take` it warns of them instead.  Samples are compared by
// the hash of the training split, or of all splits where an older program wrote the checkpoint; where other splits
// alone differ it warns.  Hashes are made only where the checkpoint knows its own: `hashes` is then Dataset::Hashes,
// else empty.
void CheckGoesOnWith(const Checkpoint& checkpoint, const RunConfig& config, const Dataset& data,
                     DataHashes& hashes);

}  // namespace dtrain
