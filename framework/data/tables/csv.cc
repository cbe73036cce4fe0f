#include "framework/data/tables/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
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
#include "framework/data/tables/channel_moments.h"
#include "framework/data/text/parallel_text.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

using Fields = std::vector<std::string>;

// Reads a file line by line as fields.
class Csv {
 public:
  // The first line is then the current one.
  Csv(const fs::path& path, char separator, bool decimal_comma)
      : path_(path), lines_(path), decimal_comma_(decimal_comma) {
    if (!Next()) throw DataError(path.string() + " is empty", "it needs one line for each sample");
    separator_ = separator != 0 ? separator : SeparatorOf(line_);
  }

  // Goes to the next line; false at the end, where trailing empty lines are ignored.
  bool Next() {
    ++number_;
    if (empty_ == 0 && !held_) {
      if (!lines_.Next(line_)) return false;
      if (!line_.empty()) return true;
      if (!HoldNextOne()) return false;
    }
    if (empty_ > 0) {
      --empty_;
      line_.clear();
    } else {
      line_ = *std::exchange(held_, std::nullopt);
    }
    return true;
  }

  std::string Where() const { return WhereIs(number_); }
  std::string WhereIs(int64_t line) const {  // counted from 1
    return fmt::format("{}: line {}", path_.string(), line);
  }
  int64_t number() const { return number_; }
  char separator() const { return separator_; }

  // Returns the number that a field is.  Also accepts "nan" and "inf", which callers must reject.
  std::optional<double> NumberIn(std::string_view field) const {
    std::string with_point;
    if (decimal_comma_) {
      if (field.find('.') != std::string_view::npos) return std::nullopt;
      with_point = field;
      std::ranges::replace(with_point, ',', '.');
      field = with_point;
    }
    if (field.starts_with('+') && !field.starts_with("+-")) field.remove_prefix(1);
    double value = 0;
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
    if (error != std::errc() || end != field.data() + field.size()) return std::nullopt;
    return value;
  }
  bool IsNumber(const std::string& field) const { return NumberIn(field).has_value(); }

  // Returns the fields of the line, without surrounding spaces.
  Fields Split() const {
    Fields fields(1);
    enum { kPlain, kQuoted, kAfterQuotes, kEnded } state = kPlain;
    for (const char c : line_) {
      if (state == kQuoted) {
        if (c == '"') {
          state = kAfterQuotes;
        } else {
          fields.back() += c;
        }
      } else if (separator_ == ' ' ? c == ' ' || c == '\t' : c == separator_) {
        if (separator_ == ' ' && state == kPlain && fields.back().empty()) continue;
        fields.emplace_back();
        state = kPlain;
      } else if (c == '"' && state == kAfterQuotes) {
        fields.back() += c;  // a doubled quote is a quote
        state = kQuoted;
      } else if (c == '"' && state == kPlain && IsBlank(fields.back())) {
        state = kQuoted;
      } else if (c == '"' || (state != kPlain && c != ' ' && c != '\t')) {
        throw DataError(
            Where() + ": its quotes are not around the whole of a field",
            "a quote that belongs to a field is written twice, and the field in quotes");
      } else if (state == kPlain) {
        fields.back() += c;
      } else {
        state = kEnded;
      }
    }
    if (state == kQuoted) {
      throw DataError(Where() + ": its quotes are not closed", "quoted fields end on their line");
    }
    if (separator_ == ' ' && state == kPlain && fields.size() > 1 && fields.back().empty()) {
      fields.pop_back();  // blanks at the end of the line
    }
    for (std::string& field : fields) Trim(field);
    return fields;
  }

 private:
  // A comma yields to others of the same number: it may be the decimal comma of the numbers between them.
  char SeparatorOf(const std::string& line) const {
    const std::string unquoted = WithoutQuoted(line);
    char most = decimal_comma_ ? ';' : ',';
    for (const char c : {';', '\t', '|'}) {
      const auto count = std::ranges::count(unquoted, c);
      if (count > 0 && count >= std::ranges::count(unquoted, most)) most = c;
    }
    const bool none = unquoted.find(most) == std::string::npos;
    return none && unquoted.find(' ') != std::string::npos ? ' ' : most;
  }
  static std::string WithoutQuoted(const std::string& line) {
    std::string unquoted;
    bool quoted = false;
    for (const char c : line) {
      if (c == '"') {
        quoted = !quoted;
      } else if (!quoted) {
        unquoted += c;
      }
    }
    return unquoted;
  }
  static bool IsBlank(const std::string& field) {
    return field.find_first_not_of(" \t") == std::string::npos;
  }
  static void Trim(std::string& field) {
    field.erase(0, std::min(field.find_first_not_of(" \t"), field.size()));
    field.erase(field.find_last_not_of(" \t") + 1);
  }

  // Reads ahead, after an empty line, to the next line that is not empty, and counts the empty ones.
  bool HoldNextOne() {
    held_.emplace();
    for (empty_ = 1; lines_.Next(*held_); ++empty_) {
      if (!held_->empty()) return true;
    }
    return false;
  }

  const fs::path path_;
  LineReader lines_;
  std::string line_;
  int64_t number_ = 0;  // of the line, counted from 1
  int64_t empty_ = 0;   // empty lines before the held one
  std::optional<std::string> held_;
  const bool decimal_comma_;
  char separator_ = 0;
};

std::string ColumnName(const Fields& names, size_t column) {
  return fmt::format("column {}{}", column + 1,
                     names.empty() ? "" : fmt::format(" ('{}')", names[column]));
}

// True if the field is a number with a decimal comma, where the file's numbers have a point.
bool HasDecimalComma(const Csv& csv, std::string field) {
  if (std::ranges::count(field, ',') != 1) return false;
  std::ranges::replace(field, ',', '.');
  return csv.IsNumber(field);
}

// Returns the beginning of a hint for a field that is no number.
std::string CommaHint(const Csv& csv, const std::string& field) {
  if (!HasDecimalComma(csv, field)) return "";
  return "data.decimal: \",\", if its numbers have a decimal comma; ";
}

double Number(const Csv& csv, const Fields& names, size_t column, const std::string& field) {
  const auto number = csv.NumberIn(field);
  if (number && std::isfinite(static_cast<float>(*number))) return *number;
  throw DataError(
      fmt::format("{}: {} {}", csv.Where(), ColumnName(names, column),
                  field.empty() ? "is empty" : fmt::format("is '{}', not a number", field)),
      CommaHint(csv, field) +
          "every cell needs a number; remove the line, fill the cell, or leave the column out by "
          "data.ignore");
}

void CheckWidth(const Csv& csv, const Fields& fields, size_t columns) {
  if (fields.size() == columns) return;
  throw DataError(fmt::format("{} has {}; the first line has {}", csv.Where(),
                              Counted(static_cast<int64_t>(fields.size()), "field"), columns),
                  "every line needs as many; a field with the separator in it goes in quotes");
}

// Returns the column, counted from 0, of a label given by number, counted from 1.
std::optional<size_t> CountedColumn(const std::string& label, size_t columns) {
  size_t number = 0;
  const auto [end, error] = std::from_chars(label.data(), label.data() + label.size(), number);
  const bool counts = error == std::errc() && end == label.data() + label.size();
  if (!counts || number < 1 || number > columns) return std::nullopt;
  return number - 1;
}

// True if the fields, or all but a label that is no number, are 0, 1, 2, ...: pandas names columns so that have no
// names.  The column of an index, which is the first, has an empty name then.
bool CountColumns(const Csv& csv, const Fields& first, std::optional<size_t> label) {
  const size_t passed = label && !csv.IsNumber(first[*label]) ? *label : first.size();
  size_t next = 0;
  for (size_t i = first[0].empty() ? 1 : 0; i < first.size(); ++i) {
    if (i != passed && first[i] != std::to_string(next++)) return false;
  }
  return next >= 3;
}

// Returns the column of the label, if it does not depend on a header.
std::optional<size_t> LabelWithoutHeader(const Fields& first, const CsvFormat& format) {
  return format.label.empty() ? std::optional(first.size() - 1)
                              : CountedColumn(format.label, first.size());
}

// True if these are column names, some of which may be known: they contain no number, a known name and no number, or
// all known names.
bool AreNames(const Csv& csv, const Fields& first, const Fields& columns) {
  const auto is_number = [&csv](const std::string& field) { return csv.IsNumber(field); };
  const std::set<std::string_view> known(columns.begin(), columns.end());
  const auto is_known = [&](const std::string& field) { return known.contains(field); };
  return std::ranges::none_of(first, is_number) ||
         std::ranges::any_of(first, [&](const auto& f) { return !is_number(f) && is_known(f); }) ||
         (!known.empty() && std::ranges::count_if(first, is_known) >= std::ssize(known));
}

// True if the first line is a header: it has no number, whereas a sample has numbers besides the label; or it counts
// the columns.
bool IsHeader(const Csv& csv, const Fields& first, const CsvFormat& format) {
  if (format.header != CsvFormat::Header::kAuto) return format.header == CsvFormat::Header::kYes;
  if (!format.columns.empty()) return AreNames(csv, first, format.columns);
  const auto label = LabelWithoutHeader(first, format);
  if (CountColumns(csv, first, label)) return true;
  if (!format.label.empty() && !csv.IsNumber(format.label) &&
      std::ranges::find(first, format.label) != first.end()) {
    return true;
  }
  std::optional<size_t> text;
  for (size_t column = first.size(); column-- > 0;) {
    const bool ignored =
        std::ranges::find(format.ignore, std::to_string(column + 1)) != format.ignore.end();
    if (column != label && !ignored && !csv.IsNumber(first[column])) text = column;
  }
  if (!text) return false;
  if (std::ranges::none_of(first, [&](const auto& f) { return csv.IsNumber(f); })) return true;
  throw DataError(fmt::format("{}: {} is '{}', not a number, and others are numbers", csv.Where(),
                              ColumnName({}, *text), first[*text]),
                  CommaHint(csv, first[*text]) +
                      "every cell needs a number; data.header: yes, if these are names");
}

// A name is searched only if there is a header.
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

constexpr size_t kNamesShown = 20;

// Returns the names, or the first of many, for a message.
std::string Some(const Fields& names) {
  const Fields shown(names.begin(), names.begin() + std::min(names.size(), kNamesShown));
  return fmt::format(
      "'{}'{}", Join(shown, "', '"),
      shown.size() == names.size() ? "" : fmt::format(" and {} more", names.size() - shown.size()));
}

// Returns the positions in `names` of the columns `wanted`.
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

[[noreturn]] void RefuseIgnored(const std::string& file, const Fields& first, bool header,
                                const std::string& name) {
  throw DataError(fmt::format("{}: no column is called '{}' (data.ignore)", file, name),
                  header
                      ? DidYouMean(NearestName(name, first)) + "its columns are " + Some(first)
                      : fmt::format("there is no header, so data.ignore has numbers from 1 to {}",
                                    first.size()));
}

struct Ignored {
  std::set<size_t> columns;
  Fields unknown;  // names that no column has
};

// Returns the columns that the format ignores.
Ignored IgnoredColumns(const std::string& file, const Fields& first, bool header,
                       const CsvFormat& format) {
  Ignored ignored;
  // The columns of a test file are known by the names of the training file, which may be numbers.
  const bool by_number = format.columns.empty();
  for (const std::string& name : format.ignore) {
    const auto named = header ? std::ranges::find(first, name) : first.end();
    const auto counted = by_number ? CountedColumn(name, first.size()) : std::nullopt;
    if (named != first.end()) {
      ignored.columns.insert(static_cast<size_t>(named - first.begin()));
    } else if (counted) {
      ignored.columns.insert(*counted);
    } else if (format.ignore_unknown && header) {
      ignored.unknown.push_back(name);
    } else {
      RefuseIgnored(file, first, header, name);
    }
  }
  return ignored;
}

// Returns the columns of a sample: those of the format, or all but the label and the ignored ones.
std::vector<size_t> SampleColumns(const std::string& file, const Fields& first, bool header,
                                  size_t label, const CsvFormat& format,
                                  const std::set<size_t>& ignored) {
  if (ignored.contains(label)) {
    throw DataError(fmt::format("{}: data.ignore names the label, {}", file,
                                ColumnName(header ? first : Fields(), label)),
                    "data.label names the column of the label");
  }
  std::vector<size_t> all(first.size());
  std::iota(all.begin(), all.end(), size_t{0});
  std::erase_if(all, [&](size_t column) { return column == label || ignored.contains(column); });
  if (all.empty()) {
    throw DataError(file + ": every column but the label is ignored", "data.ignore names fewer");
  }
  if (format.columns.empty()) return all;
  std::vector<size_t> places = PlacesOf(format.columns, first, file);
  for (const size_t place : all) {
    if (std::ranges::find(places, place) != places.end()) continue;
    throw DataError(fmt::format("{}: the training file has no column '{}'", file, first[place]),
                    "both need the same columns, in any order; data.ignore leaves columns out");
  }
  return places;
}

// The columns to read from the lines of a table.
struct Plan {
  Fields first, names;  // first line; names of all columns, empty without a header
  size_t label = 0;
  std::vector<size_t> columns;  // of a sample
  Ignored ignored;
};

Plan PlanOf(const Csv& csv, const std::string& file, const CsvFormat& format) {
  Plan plan;
  plan.first = csv.Split();
  if (plan.first.size() < 2) {
    throw DataError(csv.Where() + ": it has one field; every line needs numbers and a label",
                    "data.separator says what stands between the fields");
  }
  const bool header = IsHeader(csv, plan.first, format);
  if (!header && !format.columns.empty()) {
    throw DataError(csv.Where() + ": the columns have no names, those of the training file have",
                    "both need a header, or none");
  }
  plan.label = LabelColumn(file, plan.first, header, format.label);
  plan.ignored = IgnoredColumns(file, plan.first, header, format);
  plan.columns = SampleColumns(file, plan.first, header, plan.label, format, plan.ignored.columns);
  if (header) plan.names = plan.first;
  return plan;
}

// Holds the samples in the order of their lines.
struct Rows {
  int64_t samples = 0;
  std::vector<double> numbers;  // of the kept samples
  ChannelMoments moments;       // of all samples, if some may not be kept
  std::vector<double> first;    // the first sample
  std::vector<bool> counts;     // by column: each number is the one before plus 1
  // Holds the labels as numbers, 0 for a text; and the texts of all, each followed by a line feed.
  std::vector<double> labels;
  std::string texts;
  int64_t words = 0;  // labels that are no numbers
  int64_t first_word = 0;
};

void AddLabel(const Csv& csv, const Plan& plan, const std::string& text, Rows& rows) {
  const auto number = csv.NumberIn(text);
  if (text.empty() || (number && !std::isfinite(*number))) {
    Number(csv, plan.names, plan.label, text);
  }
  if (!number && rows.words++ == 0) rows.first_word = rows.samples;
  rows.labels.push_back(number.value_or(0));
  rows.texts += text;
  rows.texts += '\n';
}

void AddRow(const Csv& csv, const Plan& plan, int64_t keep, std::vector<double>& sample,
            Rows& rows) {
  const Fields fields = csv.Split();
  CheckWidth(csv, fields, plan.first.size());
  sample.clear();
  for (const size_t column : plan.columns) {
    sample.push_back(Number(csv, plan.names, column, fields[column]));
  }
  if (rows.samples < keep) rows.numbers.insert(rows.numbers.end(), sample.begin(), sample.end());
  if (keep != kKeepAll) rows.moments.Add(sample.data(), 1);
  if (rows.samples == 0) rows.first = sample;
  for (size_t c = 0; c < sample.size(); ++c) {
    if (sample[c] != rows.first[c] + static_cast<double>(rows.samples)) rows.counts[c] = false;
  }
  AddLabel(csv, plan, fields[plan.label], rows);
  ++rows.samples;
}

Rows ReadRows(Csv& csv, const Plan& plan, int64_t keep) {
  Rows rows{.moments = ChannelMoments(plan.columns.size(), 1),
            .counts = std::vector<bool>(plan.columns.size(), true)};
  std::vector<double> sample;
  bool more = plan.names.empty() || csv.Next();
  for (; more; more = csv.Next()) AddRow(csv, plan, keep, sample, rows);
  return rows;
}

// Iterates over the labels' texts.
class LabelTexts {
 public:
  explicit LabelTexts(const std::string& texts) : rest_(texts) {}
  bool Next(std::string_view& text) {
    const size_t end = rest_.find('\n');
    if (end == std::string_view::npos) return false;
    text = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return true;
  }

 private:
  std::string_view rest_;
};

// Returns the distinct texts, sorted.
Fields WordsIn(const std::string& texts) {
  std::set<std::string, std::less<>> found;
  std::string_view text;
  for (LabelTexts labels(texts); labels.Next(text);) {
    if (!found.contains(text)) found.emplace(text);
  }
  return {found.begin(), found.end()};
}

TableLabels LabelsOf(const Csv& csv, const Plan& plan, Rows& rows, Fields words,
                     NumberLabels numbers) {
  TableLabels labels;
  if (rows.words == 0 && (words.empty() || numbers == NumberLabels::kKept)) {
    labels.numbers = std::move(rows.labels);
    return labels;
  }
  if (words.empty()) words = WordsIn(rows.texts);
  std::map<std::string_view, size_t> places;  // the first place of a repeated word
  for (size_t i = 0; i < words.size(); ++i) places.try_emplace(words[i], i);
  std::string_view text;
  int64_t line = plan.names.empty() ? 1 : 2;
  for (LabelTexts texts(rows.texts); texts.Next(text); ++line) {
    const auto known = places.find(text);
    if (known == places.end()) {
      throw DataError(fmt::format("{}: {} is '{}', which is no class", csv.WhereIs(line),
                                  ColumnName(plan.names, plan.label), text),
                      "classes are " + Join(words));
    }
    labels.numbers.push_back(static_cast<double>(known->second));
  }
  labels.texts = rows.words;
  labels.first_text = rows.first_word;
  labels.words = std::move(words);
  return labels;
}

// Sets the names by which the columns of another file are found, if all names differ.
void NameColumns(const Plan& plan, Table& table) {
  if (std::set<std::string>(plan.names.begin(), plan.names.end()).size() != plan.first.size())
    return;
  for (const size_t column : plan.columns) table.columns.push_back(plan.names[column]);
  table.label_column = plan.names[plan.label];
}

// True for the name that pandas gives to an index: none, or "Unnamed: 0".
bool IsUnnamed(const std::string& name) { return name.empty() || name.starts_with("Unnamed: "); }

// Leaves out columns without a name that count the lines, and returns their names.
std::vector<std::string> LeaveOutIndices(Plan& plan, Rows& rows) {
  std::vector<std::string> indices;
  std::vector<size_t> kept;  // positions in a sample
  for (size_t c = 0; c < plan.columns.size(); ++c) {
    const bool index = !plan.names.empty() && IsUnnamed(plan.names[plan.columns[c]]) &&
                       rows.counts[c] && rows.samples >= kFewestCounted;
    if (index) {
      indices.push_back(plan.names[plan.columns[c]]);
    } else {
      kept.push_back(c);
    }
  }
  if (indices.empty() || kept.empty()) return {};
  const size_t width = plan.columns.size();
  size_t to = 0;
  for (size_t row = 0; row < rows.numbers.size(); row += width) {
    for (const size_t c : kept) rows.numbers[to++] = rows.numbers[row + c];
  }
  rows.numbers.resize(to);
  rows.moments.KeepChannels(kept);
  std::vector<size_t> columns;
  std::vector<bool> counts;
  for (const size_t c : kept) {
    columns.push_back(plan.columns[c]);
    counts.push_back(rows.counts[c]);
  }
  plan.columns = std::move(columns);
  rows.counts = std::move(counts);
  return indices;
}

// Returns the label of the first line if it is a text and no other line has it; "" otherwise.
std::string OnlyFirstLabel(const Rows& rows) {
  if (rows.words == 0 || rows.first_word != 0) return "";
  LabelTexts texts(rows.texts);
  std::string_view first, text;
  texts.Next(first);
  while (texts.Next(text)) {
    if (text == first) return "";
  }
  return std::string(first);
}

// True if the labels that are no numbers are numbers with a decimal comma.
bool HaveDecimalComma(const Csv& csv, const Rows& rows) {
  LabelTexts texts(rows.texts);
  for (std::string_view text; texts.Next(text);) {
    const std::string label(text);
    if (!csv.IsNumber(label) && !HasDecimalComma(csv, label)) return false;
  }
  return rows.words > 0;
}

// Throws DataError if the first line is probably a header that begins with numbers (years), taken for a sample.
void CheckFirstLabel(const Csv& csv, const CsvFormat& format, const Plan& plan, const Rows& rows) {
  if (format.header != CsvFormat::Header::kAuto || !plan.names.empty()) return;
  if (rows.words != 1 || rows.first_word != 0 || rows.samples == 1) return;
  throw DataError(
      fmt::format("{}: the label is '{}', not a number, and all other lines have numbers",
                  csv.WhereIs(1), OnlyFirstLabel(rows)),
      "data.header: yes, if the first line has the names of the columns; no, if it is a sample");
}

std::string SeparatorName(char separator) {
  return separator == '\t' ? "tabs" : separator == ' ' ? "blanks" : fmt::format("'{}'", separator);
}

// Says how the file was read, and warns of columns that are probably no data.
DataNotes NotesOf(const Csv& csv, const CsvFormat& format, const Plan& plan, const Rows& rows,
                  const std::vector<std::string>& indices) {
  DataNotes notes;
  const bool guessed = format.header == CsvFormat::Header::kAuto;
  notes.read_as =
      fmt::format("{}{}, fields separated by {}{}", plan.names.empty() ? "no header" : "a header",
                  guessed ? " (guessed)" : "", SeparatorName(csv.separator()),
                  format.decimal_comma ? ", decimal comma" : "");
  for (const std::string& name : format.ignore) {
    const Fields& unknown = plan.ignored.unknown;
    if (std::ranges::find(unknown, name) != unknown.end()) continue;
    notes.left_out.push_back(fmt::format("column '{}'", name));
  }
  for (const std::string& name : indices) {
    notes.left_out.push_back(
        fmt::format("column '{}', which has no name and counts the lines", name));
  }
  if (guessed && CountColumns(csv, plan.first, plan.label)) {
    notes.warnings.push_back(
        "its first line counts the columns and is taken for their names; data.header: no, if it is "
        "a sample");
  }
  if (!format.decimal_comma && HaveDecimalComma(csv, rows)) {
    notes.warnings.push_back(
        "its labels are read as texts, and are numbers with a decimal comma; "
        "data.decimal: \",\", if they are meant as numbers");
  }
  const std::string only = OnlyFirstLabel(rows);
  if (guessed && plan.names.empty() && !only.empty() && rows.samples > kFewestCounted) {
    notes.warnings.push_back(fmt::format(
        "its first line is read as a sample, and no other line has its label '{}'; data.header: "
        "yes, if it has the names of the columns",
        only));
  }
  for (size_t c = 0; c < plan.columns.size(); ++c) {
    const size_t column = plan.columns[c];
    const std::string name = ColumnName(plan.names, column);
    const std::string key = plan.names.empty() || plan.names[column].empty()
                                ? std::to_string(column + 1)
                                : fmt::format("'{}'", plan.names[column]);
    if (rows.counts[c] && rows.samples >= kFewestCounted) {
      notes.warnings.push_back(
          fmt::format("{} counts the lines; data.ignore: [{}], if it is no data", name, key));
    } else if (!plan.names.empty() && IsUnnamed(plan.names[column])) {
      notes.warnings.push_back(fmt::format(
          "column {} has no name; data.ignore: [{}], if it is no data", column + 1, column + 1));
    }
  }
  return notes;
}

}  // namespace

CsvTable ReadCsv(const fs::path& path, const CsvFormat& format, const Fields& words,
                 NumberLabels number_labels) {
  Csv csv(path, format.separator, format.decimal_comma);
  Plan plan = PlanOf(csv, path.string(), format);
  Rows rows = ReadRows(csv, plan, format.keep);
  if (rows.samples == 0) throw DataError(path.string() + " has a header and no samples");
  CheckFirstLabel(csv, format, plan, rows);
  CsvTable csv_table;
  csv_table.names = plan.names;
  csv_table.unknown = plan.ignored.unknown;
  if (!plan.names.empty()) {
    for (const size_t column : plan.ignored.columns) {
      csv_table.ignored.push_back(plan.names[column]);
    }
  }
  if (format.columns.empty()) csv_table.indices = LeaveOutIndices(plan, rows);
  Table& table = csv_table.table;
  table.name = path.string();
  table.samples = rows.samples;
  table.sample_shape = Shape{static_cast<int64_t>(plan.columns.size())};
  table.labels = LabelsOf(csv, plan, rows, words, number_labels);
  table.decimal_comma = format.decimal_comma;
  table.notes = NotesOf(csv, format, plan, rows, csv_table.indices);
  NameColumns(plan, table);
  const auto values = std::make_shared<TableValues>();
  values->numbers = InFewestBits(std::move(rows.numbers));
  if (rows.samples > format.keep) values->of_all = std::move(rows.moments);
  table.read = [values] { return *values; };
  table.where = [name = path.string(), header = !plan.names.empty()](int64_t sample) {
    return fmt::format("{}: line {}", name, sample + (header ? 2 : 1));
  };
  return csv_table;
}

CsvNumbers ReadCsvNumbers(const fs::path& path, int64_t count, const Fields& columns,
                          bool decimal_comma) {
  Csv csv(path, 0, decimal_comma);
  const Fields first = csv.Split();
  const bool header = AreNames(csv, first, columns);
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
  for (bool more = !header || csv.Next(); more; more = csv.Next()) {
    const Fields fields = csv.Split();
    CheckWidth(csv, fields, first.size());
    for (const size_t column : places) {
      csv_numbers.numbers.push_back(Number(csv, names, column, fields[column]));
    }
  }
  return csv_numbers;
}

}  // namespace dtrain
