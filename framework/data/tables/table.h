// Table is one split of samples of numbers, as the reader of a format returns it (npy.h, csv.h, hdf5_table.h); the
// functions below interpret its labels.
//
// A reader reads shapes and labels first, and the values only when `read` is called.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/data/dataset.h"
#include "framework/data/tables/channel_moments.h"
#include "framework/data/tables/numbers.h"
#include "framework/device/shape.h"

namespace dtrain {

// Holds the values of the kept samples, one after the other: either bytes or numbers.
struct TableValues {
  std::vector<uint8_t> bytes;
  Numbers numbers;
  std::optional<ChannelMoments> of_all = {};  // moments of all samples, if not all are here

  Numbers TakeNumbers() {  // as numbers, whichever there are
    return bytes.empty() ? std::move(numbers) : std::vector<float>(bytes.begin(), bytes.end());
  }
};

struct TableLabels {
  Shape shape;                  // of one sample: [], or [K] for several numbers
  std::vector<double> numbers;  // [samples, shape]
  bool whole_type = false;      // the file's type is one of whole numbers
  std::vector<std::string> words =
      // Text labels: `numbers` are indices of this list.
      {};
  int64_t texts = 0;       // number of words that are no numbers
  int64_t first_text = 0;  // the sample of the first
};

struct Table {
  std::string name;     // the file, for messages
  int64_t samples = 0;  // all samples of the file, kept or not; there are as many labels
  Shape sample_shape;
  bool bytes = false;  // the values are bytes, 0 to 255
  TableLabels labels;
  // If the file names its columns, these are the names of a sample's numbers, and of the label.
  std::vector<std::string> columns = {};
  std::string label_column = {};
  bool decimal_comma = false;                        // of a text file's numbers
  DataNotes notes = {};                              // how the file was read
  std::function<TableValues()> read;                 // throws DataError
  std::function<std::string(int64_t sample)> where;  // "a.csv: line 18", for messages about a label
};

// Fewer samples that count prove nothing.
inline constexpr int64_t kFewestCounted = 3;

// Task is the interpretation of labels.
enum class Task {
  kAuto,            // classes if they are texts or of a whole-number type
  kClassification,  // classes, numbered from 0 on
  kRegression       // numbers
};

// True if the labels are target numbers, not classes.  `whole_are_classes` is set for a format without types: numbers
// count as classes if all are whole and not negative.
bool IsRegression(const TableLabels& labels, Task task, bool whole_are_classes);

// True if every label is one 1 among 0s.
bool AreOneHot(const TableLabels& labels);

// Says how one-hot labels become classes.
inline constexpr char kOneHotHint[] =
    "classes are single numbers, as numpy.argmax(labels, 1) gives them";

// Returns the labels as classes, each below `classes` (0: any).  Throws DataError, naming the sample, for a label that
// is no class.
std::vector<uint16_t> ClassesOf(const Table& table, int64_t classes);

// Throws DataError, naming the sample, if a label is not a finite number.
void CheckNumbers(const Table& table);

}  // namespace dtrain
