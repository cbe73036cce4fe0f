#include "framework/report/series.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "framework/results/run_files.h"

namespace dtrain {

using nlohmann::ordered_json;

std::optional<double> Series::Joined(size_t column, size_t begin, size_t end) const {
  const Join join = columns_[column].join;
  double sum = 0;
  int64_t count = 0;
  for (size_t row = begin; row < end; ++row) {
    const std::optional<double>& value = rows_[row][column];
    if (!value) continue;
    sum = join == Join::kLast ? *value : sum + *value;
    ++count;
  }
  if (count == 0) return std::nullopt;
  return join == Join::kLast ? sum : Shortened(sum / static_cast<double>(count));
}

ordered_json Series::Json(size_t most) const {
  const size_t joined = std::max<size_t>((rows_.size() + most - 1) / most, 1);
  ordered_json json = {{"rows", rows_.size()}, {"joined", joined}};
  for (size_t column = 0; column < columns_.size(); ++column) {
    ordered_json list = ordered_json::array();
    bool any = false;
    for (size_t begin = 0; begin < rows_.size(); begin += joined) {
      const auto value = Joined(column, begin, std::min(begin + joined, rows_.size()));
      any |= value.has_value();
      list.push_back(value ? ordered_json(*value) : ordered_json());
    }
    if (any) json[columns_[column].name] = std::move(list);
  }
  return json;
}

}  // namespace dtrain
