#include "framework/data/tables/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
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
    if (lines_.empty())
      throw DataError(path.string() + " is empty", "it needs one line for each sample");
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

bool IsNumber(const std::string& field) { return NumberIn(field).has_value(); }

// Whether these are names of columns, some of which may be known: there is no number, a name that is known and no
// number, or all that are known.
bool AreNames(const Fields& first, const Fields& columns) {
  const std::set<std::string_view> known(columns.begin(), columns.end());
  const auto is_known = [&](const std::string& field) { return known.contains(field); };
  return std::ranges::none_of(first, IsNumber) ||
         std::ranges::any_of(first, [&](const auto& f) { return !IsNumber(f) && is_known(f); }) ||
         (!known.empty() && std::ranges::count_if(first, is_known) >= std::ssize(known));
}

// A header has no number; a first sample has numbers, but for the label.
bool IsHeader(const Csv& csv, const Fields& first, const CsvFormat& format) {
  if (format.header != CsvFormat::Header::kAuto) return format.header == CsvFormat::Header::kYes;
  if (!format.columns.empty()) return AreNames(first, format.columns);
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
  if (std::ranges::none_of(first, IsNumber)) return true;
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

constexpr size_t kNamesTold = 20;

// The names, or the first of many, for a message.
std::string Some(const Fields& names) {
  const Fields told(names.begin(), names.begin() + std::min(names.size(), kNamesTold));
  return fmt::format(
      "'{}'{}", Join(told, "', '"),
      told.size() == names.size() ? "" : fmt::format(" and {} more", names.size() - told.size()));
}

// Where the columns `wanted` are among `names`.
std::vector<size_t> PlacesOf(const Fields& wanted, const Fields& names, const std::string& file) {
  std::map<std::string_view, size_t> left;
  for (size_t i = 0; i < names.size(); ++i) left.try_emplace(names[i], i);
  std::vector<size_t> places;
  Fields missing;
  for (const std::string& name : wanted) {
    const auto found = left.find(name);
    if (found == left.end()) {
      missing.push_back(name);
    } else {
      places.push_back(found->second);
      left.erase(found);
    }
  }
  if (missing.empty()) return places;
  Fields others;
  for (const auto& [name, place] : left) others.emplace_back(name);
  const std::string nearest = NearestName(missing[0], others);
  throw DataError(fmt::format("{}: no column is called {}", file, Some(missing)),
                  DidYouMean(nearest) + "its columns are " + Some(names));
}

// The columns of a sample: those of the format, or all but the label.
std::vector<size_t> SampleColumns(const std::string& file, const Fields& first, size_t label,
                                  const CsvFormat& format) {
  std::vector<size_t> all(first.size());
  std::iota(all.begin(), all.end(), size_t{0});
  std::erase(all, label);
  if (format.columns.empty()) return all;
  std::vector<size_t> places = PlacesOf(format.columns, first, file);
  for (const size_t place : all) {
    if (std::ranges::find(places, place) != places.end()) continue;
    throw DataError(fmt::format("{}: the training file has no column '{}'", file, first[place]),
                    "both need the same columns, in any order");
  }
  return places;
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
    throw DataError(csv.Where(0) + ": it has one field; every line needs numbers and a label",
                    "data.separator says what stands between the fields");
  }
  const bool header = IsHeader(csv, first, format);
  if (!header && !format.columns.empty()) {
    throw DataError(csv.Where(0) + ": the columns have no names, those of the training file have",
                    "both need a header, or none");
  }
  const size_t label = LabelColumn(path.string(), first, header, format.label);
  const std::vector<size_t> columns = SampleColumns(path.string(), first, label, format);
  CsvTable csv_table;
  if (header) csv_table.names = first;
  const size_t begin = csv_table.names.empty() ? 0 : 1;
  auto numbers = std::make_shared<std::vector<float>>();
  std::vector<Label> labels;
  for (size_t line = begin; line < csv.size(); ++line) {
    Fields fields = csv.At(line);
    CheckWidth(csv, line, fields, first.size());
    for (const size_t column : columns) {
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
  if (header && std::set<std::string>(first.begin(), first.end()).size() == first.size()) {
    for (const size_t column : columns) table.columns.push_back(first[column]);
    table.label_column = first[label];
  }
  table.read = [numbers] { return TableValues{{}, *numbers}; };
  table.where = [name = path.string(), begin](int64_t sample) {
    return fmt::format("{}: line {}", name, sample + 1 + static_cast<int64_t>(begin));
  };
  return csv_table;
}

CsvNumbers ReadCsvNumbers(const fs::path& path, int64_t count, const Fields& columns) {
  const Csv csv(path, 0);
  const Fields first = csv.At(0);
  const bool header = AreNames(first, columns);
  std::vector<size_t> places(first.size());
  std::iota(places.begin(), places.end(), size_t{0});
  CsvNumbers csv_numbers;
  if (header && !columns.empty()) {
    places = PlacesOf(columns, first, path.string());
    const std::set<std::string_view> taken(columns.begin(), columns.end());
    std::ranges::copy_if(first, std::back_inserter(csv_numbers.ignored),
                         [&](const std::string& name) { return !taken.contains(name); });
  } else if (std::ssize(first) != count) {
    throw DataError(
        fmt::format("{}: {} a line, the model takes {}", path.string(),
                    Counted(std::ssize(first), "field"), count),
        columns.empty()
            ? "give the columns that the model was trained on, without the label"
            : "give these columns in this order, or in any order with a header: " + Some(columns));
  }
  const Fields names = header ? first : Fields();
  for (size_t line = header ? 1 : 0; line < csv.size(); ++line) {
    const Fields fields = csv.At(line);
    CheckWidth(csv, line, fields, first.size());
    for (const size_t column : places) {
      csv_numbers.numbers.push_back(Number(csv, line, names, column, fields[column]));
    }
  }
  return csv_numbers;
}

}  // namespace dtrain
