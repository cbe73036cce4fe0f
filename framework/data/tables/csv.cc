#include "framework/data/tables/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/core/text.h"
#include "framework/data/text/parallel_text.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

using Fields = std::vector<std::string>;

// The lines of a file, as fields.
class Csv {
 public:
  Csv(const fs::path& path, char separator) : path_(path), lines_(ReadLines(path)) {
    while (!lines_.empty() && lines_.back().empty()) lines_.pop_back();
    if (lines_.empty()) throw DataError(path.string() + " is empty", "it needs a line a sample");
    separator_ = separator != 0 ? separator : SeparatorOf(lines_[0]);
  }

  size_t size() const { return lines_.size(); }
  std::string Where(size_t line) const {
    return fmt::format("{}: line {}", path_.string(), line + 1);
  }

  // The fields of a line, from 0 on, without spaces around them.
  Fields At(size_t line) const {
    Fields fields(1);
    enum { kPlain, kQuoted, kAfterQuotes, kEnded } state = kPlain;
    for (const char c : lines_[line]) {
      if (state == kQuoted) {
        if (c == '"') {
          state = kAfterQuotes;
        } else {
          fields.back() += c;
        }
      } else if (c == separator_) {
        fields.emplace_back();
        state = kPlain;
      } else if (c == '"' && state == kAfterQuotes) {
        fields.back() += c;  // written twice: itself
        state = kQuoted;
      } else if (c == '"' && state == kPlain && IsBlank(fields.back())) {
        state = kQuoted;
      } else if (c == '"' || (state != kPlain && c != ' ' && c != '\t')) {
        throw DataError(
            Where(line) + ": its quotes are not around the whole of a field",
            "a quote that belongs to a field is written twice, and the field in quotes");
      } else if (state == kPlain) {
        fields.back() += c;
      } else {
        state = kEnded;
      }
    }
    if (state == kQuoted) {
      throw DataError(Where(line) + ": its quotes are not closed",
                      "quoted fields end on their line");
    }
    for (std::string& field : fields) Trim(field);
    return fields;
  }

 private:
  static char SeparatorOf(const std::string& line) {
    char most = ',';
    for (const char c : {';', '\t'}) {
      if (std::ranges::count(line, c) > std::ranges::count(line, most)) most = c;
    }
    return most;
  }
  static bool IsBlank(const std::string& field) {
    return field.find_first_not_of(" \t") == std::string::npos;
  }
  static void Trim(std::string& field) {
    field.erase(0, std::min(field.find_first_not_of(" \t"), field.size()));
    field.erase(field.find_last_not_of(" \t") + 1);
  }

  const fs::path& path_;
  std::vector<std::string> lines_;
  char separator_;
};

// Also "nan" and "inf", which are no numbers to learn from.
std::optional<float> NumberIn(std::string_view field) {
  if (field.starts_with('+')) field.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error != std::errc() || end != field.data() + field.size()) return std::nullopt;
  return static_cast<float>(value);
}

std::string ColumnName(const Fields& names, size_t column) {
  return fmt::format("column {}{}", column + 1,
                     names.empty() ? "" : fmt::format(" ('{}')", names[column]));
}

float Number(const Csv& csv, size_t line, const Fields& names, size_t column,
             const std::string& field) {
  const auto number = NumberIn(field);
  if (number && std::isfinite(*number)) return *number;
  throw DataError(
      fmt::format("{}: {} {}", csv.Where(line), ColumnName(names, column),
                  field.empty() ? "is empty" : fmt::format("is '{}', not a number", field)),
      "every cell needs a number; remove the line, or fill the cell");
}

void CheckWidth(const Csv& csv, size_t line, const Fields& fields, size_t columns) {
  if (fields.size() == columns) return;
  throw DataError(fmt::format("{}: {}, the first line has {}", csv.Where(line),
                              Counted(static_cast<int64_t>(fields.size()), "field"), columns),
                  "every line needs as many; a field with the separator in it goes in quotes");
}

// The column, from 0 on, of a label that is a number from 1 on.
std::optional<size_t> CountedColumn(const std::string& label, size_t columns) {
  size_t number = 0;
  const auto [end, error] = std::from_chars(label.data(), label.data() + label.size(), number);
  const bool counts = error == std::errc() && end == label.data() + label.size();
  if (!counts || number < 1 || number > columns) return std::nullopt;
  return number - 1;
}

// A header has no number; a first sample has numbers, but for the label.
bool IsHeader(const Csv& csv, const Fields& first, const CsvFormat& format) {
  if (format.header != CsvFormat::Header::kAuto) return format.header == CsvFormat::Header::kYes;
  if (!format.label.empty() && !NumberIn(format.label) &&
      std::ranges::find(first, format.label) != first.end()) {
    return true;
  }
  const auto label = format.label.empty() ? std::optional(first.size() - 1)
                                          : CountedColumn(format.label, first.size());
  std::optional<size_t> text;
  for (size_t column = first.size(); column-- > 0;) {
    if (column != label && !NumberIn(first[column])) text = column;
  }
  if (!text) return false;
  if (std::ranges::none_of(first, [](const std::string& f) { return NumberIn(f).has_value(); })) {
    return true;
  }
  throw DataError(fmt::format("{}: {} is '{}', not a number, and others are numbers", csv.Where(0),
                              ColumnName({}, *text), first[*text]),
                  "every cell needs a number; data.header: yes, if these are names");
}

// A name is looked for only where there is a header.
size_t LabelColumn(const std::string& where, const Fields& first, bool header,
                   const std::string& label) {
  if (label.empty()) return first.size() - 1;
  const auto named = header ? std::ranges::find(first, label) : first.end();
  if (named != first.end()) return static_cast<size_t>(named - first.begin());
  if (const auto counted = CountedColumn(label, first.size())) return *counted;
  throw DataError(fmt::format("{}: no column is called '{}'", where, label),
                  header ? "data.label is one of " + Join(first) + ", or a number from 1 on"
                         : fmt::format("there is no header, so data.label is a number from 1 to {}",
                                       first.size()));
}

struct Label {
  std::string text;
  std::optional<float> number;
  size_t line;
};

TableLabels LabelsOf(const Csv& csv, const std::vector<Label>& texts, Fields words,
                     NumberLabels numbers, const std::string& column) {
  TableLabels labels;
  const auto is_text = [](const Label& label) { return !label.number; };
  const auto first_text = std::ranges::find_if(texts, is_text);
  if (first_text == texts.end() && (words.empty() || numbers == NumberLabels::kKept)) {
    for (const Label& label : texts) labels.numbers.push_back(*label.number);
    return labels;
  }
  if (words.empty()) {
    std::set<std::string> found;
    for (const Label& label : texts) found.insert(label.text);
    words.assign(found.begin(), found.end());
  }
  std::map<std::string_view, size_t> places;  // of a word twice the first counts
  for (size_t i = 0; i < words.size(); ++i) places.try_emplace(words[i], i);
  for (const Label& label : texts) {
    const auto known = places.find(label.text);
    if (known == places.end()) {
      throw DataError(fmt::format("{}: {} is '{}', which is no class", csv.Where(label.line),
                                  column, label.text),
                      "classes are " + Join(words));
    }
    labels.numbers.push_back(static_cast<float>(known->second));
  }
  labels.texts = std::ranges::count_if(texts, is_text);
  labels.first_text = labels.texts > 0 ? first_text - texts.begin() : 0;
  labels.words = std::move(words);
  return labels;
}

}  // namespace

CsvTable ReadCsv(const fs::path& path, const CsvFormat& format, const Fields& words,
                 NumberLabels number_labels) {
  const Csv csv(path, format.separator);
  const Fields first = csv.At(0);
  if (first.size() < 2) {
    throw DataError(csv.Where(0) + ": one field; a sample has numbers and a label",
                    "data.separator says what is between them");
  }
  const bool header = IsHeader(csv, first, format);
  const size_t label = LabelColumn(path.string(), first, header, format.label);
  CsvTable csv_table;
  if (header) csv_table.names = first;
  const size_t begin = csv_table.names.empty() ? 0 : 1;
  auto numbers = std::make_shared<std::vector<float>>();
  std::vector<Label> labels;
  for (size_t line = begin; line < csv.size(); ++line) {
    Fields fields = csv.At(line);
    CheckWidth(csv, line, fields, first.size());
    for (size_t column = 0; column < fields.size(); ++column) {
      if (column == label) continue;
      numbers->push_back(Number(csv, line, csv_table.names, column, fields[column]));
    }
    const std::string& text = fields[label];
    const auto number = NumberIn(text);
    if (text.empty() || (number && !std::isfinite(*number))) {
      Number(csv, line, csv_table.names, label, text);
    }
    labels.push_back({std::move(fields[label]), number, line});
  }
  if (labels.empty()) throw DataError(path.string() + " has a header and no samples");
  Table& table = csv_table.table;
  table.name = path.string();
  table.samples = static_cast<int64_t>(labels.size());
  table.sample_shape = Shape{static_cast<int64_t>(first.size()) - 1};
  table.labels = LabelsOf(csv, labels, words, number_labels, ColumnName(csv_table.names, label));
  table.read = [numbers] { return TableValues{{}, *numbers}; };
  table.where = [name = path.string(), begin](int64_t sample) {
    return fmt::format("{}: line {}", name, sample + 1 + static_cast<int64_t>(begin));
  };
  return csv_table;
}

std::vector<float> ReadCsvNumbers(const fs::path& path, int64_t columns) {
  const Csv csv(path, 0);
  const Fields first = csv.At(0);
  if (static_cast<int64_t>(first.size()) != columns) {
    throw DataError(fmt::format("{}: {} a line, the model takes {}", path.string(),
                                Counted(static_cast<int64_t>(first.size()), "field"), columns),
                    "give the columns that the model was trained on, without the label");
  }
  const bool header = std::ranges::none_of(
      first, [](const std::string& field) { return NumberIn(field).has_value(); });
  const Fields names = header ? first : Fields();
  std::vector<float> numbers;
  for (size_t line = header ? 1 : 0; line < csv.size(); ++line) {
    const Fields fields = csv.At(line);
    CheckWidth(csv, line, fields, first.size());
    for (size_t column = 0; column < fields.size(); ++column) {
      numbers.push_back(Number(csv, line, names, column, fields[column]));
    }
  }
  return numbers;
}

}  // namespace dtrain
