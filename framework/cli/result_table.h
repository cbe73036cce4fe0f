// ResultTable: a table with one row for each group of runs and one column for each result.  A cell holds mean and
// standard deviation.  It is printed as text or JSON.  `simulate --compare` and `sweep` end with one.  They name the same
// quantity by the same key.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace dtrain {

struct TableColumn {
  std::string name;       // key in JSON
  std::string title;      // heading in the text
  int digits = 2;         // after the decimal point
  bool always = false;    // shown even if no run has a value
  std::string also = "";  // a second key in JSON, which older scripts read
};

struct TableRow {
  std::string name;
  std::vector<std::pair<std::string, std::string>> settings = {};  // in JSON only
  size_t runs = 0;
  std::vector<std::vector<double>> values;  // by column: the values of the runs that have one
};

class ResultTable {
 public:
  // `heading` names what a row stands for, for example "strategy"; `counted` what its runs stand for, "seeds".
  ResultTable(std::string heading, std::string counted, std::vector<TableColumn> columns)
      : heading_(std::move(heading)), counted_(std::move(counted)), columns_(std::move(columns)) {}

  void Add(TableRow row) { rows_.push_back(std::move(row)); }

  // Returns the table as text, at most 100 columns wide; columns that do not fit follow in another block of lines with
  // the same row names.  A cell shows the mean and, with several runs, the deviation.  "(2/3)" follows if only two of
  // three runs have a value; "-" means that no run has one.
  std::string Text() const;
  // Returns one line for each row: {"strategy": "ps_ssp", "seeds": 3, "seconds": {"mean": 1.5, "deviation": 0.1}}.
  // "runs" in a cell is the number of runs that have a value, if not all do.
  std::vector<std::string> JsonLines() const;
  std::string Json() const;  // all rows, indented; ends with a newline

 private:
  bool IsShown(size_t column) const;
  std::vector<std::string> Names(bool above) const;

  std::string heading_, counted_;
  std::vector<TableColumn> columns_;
  std::vector<TableRow> rows_;
};

}  // namespace dtrain
