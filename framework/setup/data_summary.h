// DataSummary: what a run understood of data of the user's own, for its first lines, its summary and `--dry-run`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/data/dataset.h"

namespace dtrain {

struct DataSummary {
  std::string files;    // DataNotes::files
  std::string samples;  // "1620 training, 180 validation and 200 test samples"
  std::string sample;   // one sample: "3 columns (area, rooms, year)", "images of 3 x 32 x 32"
  std::string read_as;  // DataNotes::read_as
  int64_t classes = 0;
  // The classes with the fewest training samples, fewest first, at most five; and these samples.
  std::vector<std::pair<std::string, int64_t>> fewest;
  std::vector<std::string> left_out, warnings;  // those of DataNotes, and classes without samples
};

// Returns nothing for a published set.
std::optional<DataSummary> DescribeData(const Dataset& dataset);

// Returns "csv houses.csv: 1620 training and 200 test samples of 3 columns (area, rooms, year); ...", one line.
std::string TextOf(const DataSummary& data, const std::string& name);

}  // namespace dtrain
