#include "framework/cli/result_table.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/core/printable.h"
#include "framework/core/statistics.h"
#include "framework/core/text.h"

namespace dtrain {
namespace {

using nlohmann::ordered_json;

constexpr size_t kTableWidth = 100;  // fits a terminal and a page
constexpr size_t kLongName = 40;     // longer names are on a line above their row
constexpr size_t kGapWidth = 2;

std::string Cell(const TableRow& row, const std::vector<double>& values, int digits) {
  if (values.empty()) return "-";
  const Moments moments = MomentsOf(values);
  std::string text = fmt::format("{:.{}f}", moments.mean, digits);
  if (values.size() > 1) text += fmt::format(" +-{:.{}f}", moments.deviation, digits);
  if (values.size() < row.runs) text += fmt::format(" ({}/{})", values.size(), row.runs);
  return text;
}

// Holds the cells of a column, one for each line.
using Texts = std::vector<std::string>;

size_t Longest(const Texts& texts) {
  return std::ranges::max(texts, {}, &std::string::size).size();
}

// Appends the column to the right of the lines.
void AddColumn(const Texts& cells, Texts& lines) {
  const size_t width = Longest(cells);
  for (size_t i = 0; i < lines.size(); ++i) {
    lines[i] += fmt::format("{:{}}{:>{}}", "", kGapWidth, cells[i], width);
  }
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

// Returns the heading and the rows' names, which are to the left of each block of columns.
std::vector<std::string> ResultTable::Names(bool above) const {
  Texts names = {heading_};
  for (const TableRow& row : rows_) names.push_back(above ? "" : row.name);
  const size_t width = Longest(names);
  for (std::string& name : names) name.resize(width, ' ');
  return names;
}

std::string ResultTable::Text() const {
  const bool above =
      std::ranges::any_of(rows_, [](const TableRow& row) { return row.name.size() > kLongName; });
  const Texts names = Names(above);
  std::vector<Texts> blocks = {names};
  for (size_t c = 0; c < columns_.size(); ++c) {
    if (!IsShown(c)) continue;
    Texts cells = {columns_[c].title};
    for (const TableRow& row : rows_) {
      cells.push_back(Cell(row, row.values[c], columns_[c].digits));
    }
    const size_t width = blocks.back()[0].size();
    if (width > names[0].size() && width + kGapWidth + Longest(cells) > kTableWidth) {
      blocks.push_back(names);
    }
    AddColumn(cells, blocks.back());
  }
  std::string text;
  for (const Texts& lines : blocks) {
    if (!text.empty()) text += '\n';
    for (size_t i = 0; i < lines.size(); ++i) {
      if (above && i > 0) text += rows_[i - 1].name + '\n';
      text += lines[i] + '\n';
    }
  }
  return text;
}

std::vector<std::string> ResultTable::JsonLines() const {
  std::vector<std::string> lines;
  for (const TableRow& row : rows_) {
    ordered_json json = {{heading_, row.name}};
    for (const auto& [key, value] : row.settings) json["settings"][key] = value;
    json[counted_] = row.runs;
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (row.values[c].empty()) continue;
      json[columns_[c].name] = JsonCell(row, row.values[c]);
      if (!columns_[c].also.empty()) json[columns_[c].also] = json[columns_[c].name];
    }
    lines.push_back(JsonText(json));
  }
  return lines;
}

std::string ResultTable::Json() const {
  ordered_json table = ordered_json::array();
  for (const std::string& line : JsonLines()) table.push_back(ordered_json::parse(line));
  return JsonText(table, 2) + "\n";
}

}  // namespace dtrain
