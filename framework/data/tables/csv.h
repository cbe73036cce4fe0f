// Reads CSV: one line per sample, with separated numbers and a column of labels (RFC 4180, without line ends inside
// quotes).  Plain or .gz, UTF-8.
//
// Every line must have as many fields as the first, and a number in each but the label's and the ignored ones; else a
// DataError names file, line and column.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "framework/data/tables/table.h"

namespace dtrain {

struct CsvFormat {
  enum class Header { kAuto, kYes, kNo };
  // ' ': any number of blanks and tabs.  0: the most frequent of , ; | and tab in the first line, outside quotes, the
  // comma only if it is the most frequent alone; blanks if it has none.
  char separator = 0;
  bool decimal_comma = false;  // 1,5 is one and a half; then 0 above does not take the comma
  Header header =
      // kAuto finds a header if the first line has no number, contains the label's name, or counts the columns from 0 on
      // (0, 1, 2, ...), perhaps without the label, as pandas names them.  A first line whose label alone is no number is
      // refused.
      Header::kAuto;
  // Names the label's column, or gives its number (from 1); "": the last one.
  std::string label;
  // Columns that are not read, by name or, in a training file, by number.  A name that no column has is an error,
  // unless `ignore_unknown` is set and there is a header.
  std::vector<std::string> ignore = {};
  bool ignore_unknown = false;
  // A sample has these columns, in the order of the training file: the header must have exactly these and the label, in
  // any order, and may have ignored ones.  Empty: all columns but the label and the ignored ones, in the file's order.
  std::vector<std::string> columns = {};
  // Only the first `keep` samples' numbers are kept (DatasetSource::KeepFirst).  All lines are read.
  int64_t keep = kKeepAll;
};

struct CsvTable {
  Table table;                     // samples of [columns] numbers; `read` returns them
  std::vector<std::string> names;  // of all columns; empty without a header
  // Hold the names of the ignored columns, and the names in CsvFormat::ignore that no column has; empty without a header.
  std::vector<std::string> ignored, unknown;
  // A column without a name that counts the lines is left out, as pandas writes an index.  These are such columns, by
  // their names ("" or "Unnamed: 0").
  std::vector<std::string> indices;
};

// NumberLabels is the treatment of labels that are all numbers.
enum class NumberLabels {
  kKept,  // they stay numbers
  kWords  // they count as words if `words` is given
};

// `words` lists the classes of text labels in order; if it is empty, the labels that occur are the classes, sorted,
// unless all labels are numbers.
CsvTable ReadCsv(const std::filesystem::path& path, const CsvFormat& format,
                 const std::vector<std::string>& words = {},
                 NumberLabels numbers = NumberLabels::kWords);

// Holds samples without labels, for a model that takes `count` numbers per sample.
struct CsvNumbers {
  std::vector<double> numbers;       // [samples, count]
  std::vector<std::string> ignored;  // columns that the model does not use
};

// `columns` are the names in the order of the training; empty if unknown.  A first line without any number, or with
// these names, is a header.  If there is a header and the names are known, columns are found by name, and missing ones
// are a DataError; else they are taken in order, and there must be `count` of them.
CsvNumbers ReadCsvNumbers(const std::filesystem::path& path, int64_t count,
                          const std::vector<std::string>& columns = {}, bool decimal_comma = false);

}  // namespace dtrain
