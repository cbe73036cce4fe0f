// Series: columns of numbers over the course of a run, thinned for a chart.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace dtrain {

class Series {
 public:
  // Decides how neighbouring rows become one point if there are too many rows: kLast for positions, kMean for values.
  // Missing entries are ignored.
  enum class Join { kLast, kMean };
  struct Column {
    std::string name;
    Join join = Join::kMean;
  };
  using Row = std::vector<std::optional<double>>;  // one entry for each column

  explicit Series(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void Add(Row row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.empty(); }

  // Returns {"rows": 1200, "joined": 2, "step": [2, 4, ...], "loss": [...]} with at most `most` points.  Each point
  // joins `joined` rows, the last one possibly fewer.  Columns without any value are left out; null marks a missing
  // value.
  nlohmann::ordered_json Json(size_t most) const;

 private:
  std::optional<double> Joined(size_t column, size_t begin, size_t end) const;

  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

}  // namespace dtrain
