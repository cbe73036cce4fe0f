// ResultTable: rows of like runs, columns of what came out of them: mean and deviation, for people
// and as JSON.  `simulate --compare` and `sweep` end with one.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace dtrain {

struct TableColumn {
  std::string name;     // in JSON
  std::string title;    // for people
  int digits = 2;       // behind the point
  bool always = false;  // also where no run has it
};

struct TableRow {
  std::string name;
  std::vector<std::pair<std::string, std::string>> settings =
      {};  // told in JSON where there are any
  size_t runs = 0;
  std::vector<std::vector<double>> values;  // by column: of the runs that have one
};

class ResultTable {
 public:
  // `heading`: what the rows are, "strategy"; `counted`: what their runs are, "seeds".
  ResultTable(std::string heading, std::string counted, std::vector<TableColumn> columns)
      : heading_(std::move(heading)), counted_(std::move(counted)), columns_(std::move(columns)) {}

  void Add(TableRow row) { rows_.push_back(std::move(row)); }

  // A cell is a mean, with several runs and a deviation, and with "(2/3)" behind it where only so
  // many of the runs have a value; "-" where none has.  At most 100 columns wide: what does not fit
  // follows in another block of lines with the same names.
  std::string Text() const;
  // A line a row: {"strategy": "ps_ssp", "seeds": 3, "seconds": {"mean": 1.5, "deviation": 0.1}};
  // "runs" in a cell: how many of the runs it is of, where not of all.
  std::vector<std::string> JsonLines() const;
  std::string Json() const;  // indented, ends with a newline

 private:
  bool IsShown(size_t column) const;
  std::vector<std::string> Names(bool above) const;

  std::string heading_, counted_;
  std::vector<TableColumn> columns_;
  std::vector<TableRow> rows_;
};

}  // namespace dtrain
