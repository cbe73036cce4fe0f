#include "framework/cli/result_table.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/core/statistics.h"
#include "framework/core/text.h"

namespace dtrain {
namespace {

using nlohmann::ordered_json;

constexpr size_t kNameWidth = 12, kCellWidth = 17;

std::string Cell(const TableRow& row, const std::vector<double>& values, int digits) {
  if (values.empty()) return "-";
  const Moments moments = MomentsOf(values);
  std::string text = fmt::format("{:.{}f}", moments.mean, digits);
  if (values.size() > 1) text += fmt::format(" +-{:.{}f}", moments.deviation, digits);
  if (values.size() < row.runs) text += fmt::format(" ({}/{})", values.size(), row.runs);
  return text;
}

// Fills them with blanks to the length of the longest one, `least` at least.
void Widen(std::vector<std::string>& texts, size_t least) {
  size_t width = least;
  for (const std::string& text : texts) width = std::max(width, text.size());
  for (std::string& text : texts) text.resize(width, ' ');
}

ordered_json JsonCell(const TableRow& row, const std::vector<double>& values) {
  const Moments moments = MomentsOf(values);
  ordered_json cell = {{"mean", moments.mean}, {"deviation", moments.deviation}};
  if (values.size() < row.runs) cell["runs"] = values.size();
  return cell;
}

}  // namespace

bool ResultTable::IsShown(size_t column) const {
  return columns_[column].always ||
         std::any_of(rows_.begin(), rows_.end(),
                     [&](const TableRow& row) { return !row.values[column].empty(); });
}

std::string ResultTable::Text() const {
  std::vector<std::string> lines = {heading_};
  for (const TableRow& row : rows_) lines.push_back(row.name);
  Widen(lines, kNameWidth);
  for (size_t c = 0; c < columns_.size(); ++c) {
    if (!IsShown(c)) continue;
    std::vector<std::string> cells = {columns_[c].title};
    for (const TableRow& row : rows_) {
      cells.push_back(Cell(row, row.values[c], columns_[c].digits));
    }
    size_t width = kCellWidth;
    for (const std::string& cell : cells) width = std::max(width, cell.size());
    for (size_t line = 0; line < lines.size(); ++line) {
      lines[line] += fmt::format(" {:>{}}", cells[line], width);
    }
  }
  return Join(lines, "\n") + "\n";
}

std::vector<std::string> ResultTable::JsonLines() const {
  std::vector<std::string> lines;
  for (const TableRow& row : rows_) {
    ordered_json json = {{heading_, row.name}};
    for (const auto& [key, value] : row.settings) json["settings"][key] = value;
    json[counted_] = row.runs;
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (!row.values[c].empty()) json[columns_[c].name] = JsonCell(row, row.values[c]);
    }
    lines.push_back(json.dump());
  }
  return lines;
}

std::string ResultTable::Json() const {
  ordered_json table = ordered_json::array();
  for (const std::string& line : JsonLines()) table.push_back(ordered_json::parse(line));
  return table.dump(2) + "\n";
}

}  // namespace dtrain
