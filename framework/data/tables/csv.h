// CSV: a line a sample, numbers between separators, and a column of labels (RFC 4180, without line ends inside
// quotes).  Plain or .gz, UTF-8.
//
// Every line must have as many fields as the first, and a number in each but the label's; else a DataError names file,
// line and column.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "framework/data/tables/table.h"

namespace dtrain {

struct CsvFormat {
  enum class Header { kAuto, kYes, kNo };
  char separator = 0;  // 0: of , ; and the tab, what the first line has most of
  Header header =
      Header::kAuto;  // auto: where the first line has no number, or has the name of the label
  std::string label;  // the name of its column, or its number from 1 on; "": the last one
};

struct CsvTable {
  Table table;                     // samples of [columns - 1] numbers; `read` gives them out
  std::vector<std::string> names;  // of all columns; empty without a header
};

// What becomes of labels that are all numbers.
enum class NumberLabels {
  kKept,  // they stay what they are
  kWords  // they are words, too, where `words` says which there are
};

// `words`: the classes that labels which are texts have, in order; empty: those that occur, by spelling, if not all
// labels are numbers.
CsvTable ReadCsv(const std::filesystem::path& path, const CsvFormat& format,
                 const std::vector<std::string>& words = {},
                 NumberLabels numbers = NumberLabels::kWords);

// Numbers without a label, for a model that takes `columns` of them.  [samples, columns]  A first line without any
// number is a header.
std::vector<float> ReadCsvNumbers(const std::filesystem::path& path, int64_t columns);

}  // namespace dtrain
