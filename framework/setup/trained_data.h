// Compares the data that weights were trained on, as their file describes them, with the data of a run or an evaluation
// that uses the weights: columns, classes, mean and deviation, all other properties that images share, and the samples
// themselves.
//
// A property that either side lacks is not compared: weights from elsewhere lack some or all of them.  Vocabularies are compared when a file is read (CheckVocabularies).
#pragma once

#include <string>

#include "framework/checkpoint/checkpoint.h"
#include "framework/data/dataset.h"
#include "framework/setup/run_config.h"

namespace dtrain {

// Replaces a measured mean or deviation of `data` by that of the weights; one that the config gives is kept.  Targets are
// taken as they are if the weights do not describe their data.  Returns a line that reports the change, "" if there was
// none.  `weights` is the file, for messages.
std::string NormaliseAsTrained(const CheckpointInfo& info, const std::string& weights,
                               Dataset& data);

// An evaluation calls this after NormaliseAsTrained.  Throws DataError if the weights were trained on other columns of
// a table, or on the same columns in another order: the columns would be mistaken for each other.  Warns (`tell`) if
// classes have other names, if image files are decoded with another `fit` or `orientation`, and, before an evaluation
// (`evaluates`), if the weights may have been trained on samples that are held out today.
void CheckTrainedOn(const CheckpointInfo& info, const std::string& weights, const Dataset& dataset,
                    bool tell, bool evaluates = true);

// A resumed run calls this after NormaliseAsTrained.  Throws CheckpointMismatch with all differences, the checkpoint's
// value and the present one; with `checkpoint.other_data: take` it warns of them instead.  Samples are compared by the
// hash of the training split, or of all splits if the data set has no hash of each.  If only other splits differ, it
// warns.  Hashes are computed
// only if the checkpoint has its own: `hashes` is then Dataset::Hashes, else empty.
void CheckGoesOnWith(const Checkpoint& checkpoint, const RunConfig& config, const Dataset& data,
                     DataHashes& hashes);

}  // namespace dtrain
