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
  // The columns of a sample in the order of the training file: the header must have these and the label, in any
  // order, and no others.  Empty: all but the label, as they come.
  std::vector<std::string> columns = {};
  // Numbers of as many samples are kept, the first ones (DatasetSource::KeepFirst).  All lines are read.
  int64_t keep = kKeepAll;
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

// Numbers without labels, for a model that takes `count` of them a sample.
struct CsvNumbers {
  std::vector<float> numbers;        // [samples, count]
  std::vector<std::string> ignored;  // columns that the model does not take
};

// `columns`: their names in the order of the training; empty where these are not known.  A first line without any
// number, or with these names, is a header.  With it known columns are taken by their names, and a DataError tells
// those that are not there; else they are taken as they come, and there must be `count` of them.
CsvNumbers ReadCsvNumbers(const std::filesystem::path& path, int64_t count,
                          const std::vector<std::string>& columns = {});

}  // namespace dtrain
