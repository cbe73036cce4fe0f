// Table: one split of samples that are numbers, as the reader of a format hands it over (npy.h, csv.h,
// hdf5_table.h), and what becomes of its labels.
//
// A reader looks at all that can be known without the values - shapes and labels - and reads the values when
// they are asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/data/dataset.h"
#include "framework/data/tables/channel_moments.h"
#include "framework/device/shape.h"

namespace dtrain {

// The values of the samples that are kept, one after the other: either the ones or the others.
struct TableValues {
  std::vector<uint8_t> bytes;
  std::vector<float> numbers;
  std::optional<ChannelMoments> of_all = {};  // of all samples, where not all of them are here

  std::vector<float> TakeNumbers() {  // whichever there are
    return bytes.empty() ? std::move(numbers) : std::vector<float>(bytes.begin(), bytes.end());
  }
};

struct TableLabels {
  Shape shape;                 // of one sample: [], or [K] for several numbers
  std::vector<float> numbers;  // [samples, shape]
  bool whole_type = false;     // the file says that they are whole numbers
  std::vector<std::string> words =
      {};                  // labels that are texts: `numbers` counts them in this order
  int64_t texts = 0;       // of these, as many are no numbers
  int64_t first_text = 0;  // the sample of the first
};

struct Table {
  std::string name;     // of the file, for messages
  int64_t samples = 0;  // all of the file, and as many labels, however many are kept
  Shape sample_shape;
  bool bytes = false;  // its values are bytes, 0 to 255
  TableLabels labels;
  // Of a file that gives each column a name of its own: those of a sample's numbers, and the label's.
  std::vector<std::string> columns = {};
  std::string label_column = {};
  std::function<TableValues()> read;                 // throws DataError
  std::function<std::string(int64_t sample)> where;  // "a.csv: line 18", for messages about a label
};

// What labels are.
enum class Task {
  kAuto,            // classes where they are texts or of a type of whole numbers
  kClassification,  // classes, numbered from 0 on
  kRegression       // numbers
};

// Whether the labels are numbers to come near to, and no classes.  `whole_are_classes`: a format that has no types,
// so that numbers count as classes when all are whole and from 0 on.
bool IsRegression(const TableLabels& labels, Task task, bool whole_are_classes);

// The labels as classes, each below `classes` (0: as many as the largest says).  Throws DataError, naming the sample,
// for one that is none.
std::vector<uint16_t> ClassesOf(const Table& table, int64_t classes);

// Every label is a number; DataError that names the sample where one is not.
void CheckNumbers(const Table& table);

}  // namespace dtrain
