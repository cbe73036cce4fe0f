// Series: columns of numbers along a run, thinned for a chart.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace dtrain {

class Series {
 public:
  // How neighbours become one point where there are too many: a position is that of the last, a value their
  // mean.  What is missing of a row takes no part in it.
  enum class Join { kLast, kMean };
  struct Column {
    std::string name;
    Join join = Join::kMean;
  };
  using Row = std::vector<std::optional<double>>;  // an entry a column

  explicit Series(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void Add(Row row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.empty(); }

  // {"rows": 1200, "joined": 2, "step": [2, 4, ...], "loss": [...]}: at most `most` points, each of `joined`
  // rows (the last of fewer, perhaps).  Columns that nobody has given are left out; null: missing there.
  nlohmann::ordered_json Json(size_t most) const;

 private:
  std::optional<double> Joined(size_t column, size_t begin, size_t end) const;

  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

}  // namespace dtrain
