#include "framework/data/tables/table_source.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/text.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

// True if all files exist; reports errors for missing ones.
bool AreThere(config::Reader& reader,
              const std::vector<std::pair<std::string, std::string>>& files) {
  bool all = true;
  for (const auto& [key, path] : files) {
    std::error_code ignored;
    if (fs::is_regular_file(path, ignored)) continue;
    reader.AddError(key, WhyNoFile(path, fmt::format("there is no file {}", path)),
                    WhereItBegins(path));
    all = false;
  }
  return all;
}

// Returns an image's shape [C, H, W]; an image with two axes is grey.
Shape WithChannel(const Shape& shape) { return shape.rank() == 2 ? shape.Prepend(1) : shape; }

// Throws the error for text labels where numbers are needed.
[[noreturn]] void RefuseText(const Table& table, const std::string& why, const std::string& hint) {
  const TableLabels& labels = table.labels;
  const auto word = static_cast<size_t>(labels.numbers[static_cast<size_t>(labels.first_text)]);
  throw DataError(fmt::format("{}: the label '{}' is a text, {}", table.where(labels.first_text),
                              labels.words[word], why),
                  hint);
}

// Measures mean and deviation of pixels / 255.
void MeasureImages(const LabelledImages& images, const std::optional<ChannelMoments>& of_all,
                   ImageSetSpec& spec) {
  if (!of_all) return MeasurePixels(images, spec);
  const std::vector<double> variances = of_all->variances();
  std::vector<double> means, deviations;  // floats, as MeasurePixels gives them
  for (size_t c = 0; c < variances.size(); ++c) {
    means.push_back(static_cast<float>(of_all->means()[c] / 255));
    const double variance = variances[c] / (255.0 * 255.0);
    deviations.push_back(variance > 1e-9 ? static_cast<float>(std::sqrt(variance)) : 1.0f);
  }
  spec.mean = PerChannel(std::move(means));
  spec.deviation = PerChannel(std::move(deviations));
}

// Warns of these columns or channels, which have one value in all samples.
void NoteConstants(const ImageSetSpec& spec, const std::vector<int64_t>& constant,
                   DataNotes& notes) {
  if (constant.empty()) return;
  std::vector<std::string> names;
  for (const int64_t c : constant) {
    const bool named = std::ssize(spec.columns) == spec.image_shape[0];
    names.push_back(named ? fmt::format("'{}'", spec.columns[c]) : std::to_string(c + 1));
  }
  const char* const what = spec.image_shape.rank() == 1 ? "column" : "channel";
  notes.warnings.push_back(fmt::format("{}{} {} {} one value in all samples", what,
                                       names.size() == 1 ? "" : "s", Join(names),
                                       names.size() == 1 ? "has" : "have"));
}

// Warns of columns that count the samples: they are probably no data.
void NoteCounted(const Numbers& samples, int64_t columns, DataNotes& notes) {
  const auto warn = [&](const auto& values) {
    const int64_t rows = std::ssize(values) / columns;
    for (int64_t c = 0; c < columns && rows >= kFewestCounted; ++c) {
      int64_t row = 0;
      while (row < rows && values[row * columns + c] == values[c] + row) ++row;
      if (row == rows) notes.warnings.push_back(fmt::format("column {} counts the samples", c + 1));
    }
  };
  std::visit(warn, samples);
}

}  // namespace

TableSource::Files TableSource::ReadAllKeys(config::Reader& reader) {
  Files files = ReadKeys(reader);
  test_share_ =
      reader.Number("test_share", 0.1)
          .Above(0)
          .Max(0.5)
          .Help("fraction of the training samples that becomes the test split if test is missing");
  const std::string task =
      reader.String("task", "auto")
          .OneOf({"auto", "classification", "regression"})
          .Help(whole_are_classes_
                    ? "meaning of the labels: classes, numbered from 0, or target numbers "
                      "(regression); auto: classes if all labels are whole and not negative"
                    : "meaning of the labels: classes, numbered from 0, or target numbers "
                      "(regression); auto: classes if their type is one of whole numbers");
  task_ = task == "auto"         ? Task::kAuto
          : task == "regression" ? Task::kRegression
                                 : Task::kClassification;
  spec_.class_names = static_cast<std::vector<std::string>>(
      reader.Strings("class_names", {})
          .Help("name of each class, in the order of the labels; []: the labels themselves"));
  if (images_) {
    pixels_.Configure(reader);
  } else {
    pixels_.ConfigureNumbers(reader);
  }
  return files;
}

void TableSource::Configure(config::Reader& reader) {
  const Files files = ReadAllKeys(reader);
  if (files.train.empty()) return;
  if (!AreThere(reader, files.train) || !AreThere(reader, files.test)) return;
  train_ = Open(Split::kTrain, spec_.class_names);
  Settle(reader);
  if (files.test.empty()) return;
  test_share_ = 0;
  test_ = Open(Split::kTest, spec_.class_names);
  if (train_->labels.words.empty() && !test_->labels.words.empty()) {
    RefuseText(*test_, fmt::format("those of {} are numbers", train_->name),
               "give the sample a number, or remove it");
  }
  if (test_->sample_shape != train_->sample_shape || test_->bytes != train_->bytes ||
      test_->labels.shape != train_->labels.shape) {
    throw DataError(
        fmt::format("{}: samples of shape {} with labels of {}, those of {} are {} with {}",
                    test_->name, test_->sample_shape.ToString(), test_->labels.shape.ToString(),
                    train_->name, train_->sample_shape.ToString(), train_->labels.shape.ToString()),
        "both splits must have the same shapes and types");
  }
  if (spec_.classes > 0) {
    notes_.first_class =
        std::min<int64_t>(notes_.first_class, std::ranges::min(ClassesOf(*test_, spec_.classes)));
  }
  if (spec_.classes == 0) CheckNumbers(*test_);
}

// Derives the set's properties from the training samples.
void TableSource::Settle(config::Reader& reader) {
  const TableLabels& labels = train_->labels;
  spec_.image_shape = train_->sample_shape;
  spec_.columns = train_->columns;
  spec_.label_column = train_->label_column;
  const bool regression = IsRegression(labels, task_, whole_are_classes_);
  int64_t first_class = 0;
  if (regression) {
    if (!labels.words.empty()) {
      RefuseText(*train_, "not a number",
                 labels.texts == train_->samples ? "data.task: classification"
                                                 : "give the sample a number, or remove it");
    }
    CheckNumbers(*train_);
    spec_.target_shape = labels.shape;
    if (!spec_.class_names.empty()) {
      reader.AddError("class_names", "the labels are numbers, not classes", "leave the key out",
                      {"train", "train_labels", "label", "task"});
      spec_.class_names.clear();
    }
  } else {
    const auto classes = ClassesOf(*train_, static_cast<int64_t>(spec_.class_names.size()));
    first_class = std::ranges::min(classes);
    if (spec_.class_names.empty()) spec_.class_names = labels.words;
    spec_.classes = spec_.class_names.empty() ? *std::ranges::max_element(classes) + 1
                                              : static_cast<int64_t>(spec_.class_names.size());
  }
  const bool images = images_ && train_->bytes && spec_.image_shape.rank() >= 2;
  if (images_ && spec_.image_shape.rank() >= 2) spec_.image_shape = WithChannel(spec_.image_shape);
  spec_.numbers = !images || regression;
  spec_.decimal_comma = train_->decimal_comma;
  pixels_.Check(reader, spec_);
  notes_ = train_->notes;
  notes_.first_class = first_class;
  if (notes_.files.empty()) notes_.files = train_->name;
  std::string as = regression ? "a number" : "a class";
  if (labels.shape.count() > 1) as = Counted(labels.shape.count(), "number");
  notes_.read_as += fmt::format(
      "{}label {} {}", notes_.read_as.empty() ? "" : "; ",
      train_->label_column.empty() ? "is" : fmt::format("'{}' is", train_->label_column), as);
  if (spec_.classes == 0 && AreOneHot(labels)) {
    notes_.warnings.push_back(std::string("each label is one 1 among 0s; ") + kOneHotHint);
  }
}

int64_t TableSource::size(Split split) const {
  const std::optional<Table>& table = split == Split::kTrain ? train_ : test_;
  return table && split != Split::kValidation ? table->samples : 0;
}

// Returns the classes of the kept samples; all labels must be classes.
std::vector<uint16_t> TableSource::KeptClassesOf(const Table& table) const {
  std::vector<uint16_t> classes = ClassesOf(table, spec_.classes);
  classes.resize(static_cast<size_t>(std::min(keep_, table.samples)));
  return classes;
}

LabelledNumbers TableSource::NumbersOf(const Table& table) const {
  TableValues values = table.read();
  LabelledNumbers numbers;
  numbers.of_all = std::move(values.of_all);
  numbers.samples = values.TakeNumbers();
  if (spec_.classes > 0) {
    numbers.classes = KeptClassesOf(table);
  } else {
    const auto kept = std::min(keep_, table.samples) * table.labels.shape.count();
    numbers.targets.assign(table.labels.numbers.begin(), table.labels.numbers.begin() + kept);
  }
  return numbers;
}

std::unique_ptr<Dataset> TableSource::Load(const fs::path& folder, uint64_t seed) const {
  return spec_.numbers ? LoadNumbers() : LoadImages(seed);
}

std::unique_ptr<Dataset> TableSource::LoadImages(uint64_t seed) const {
  ImageSetSpec spec = spec_;
  const auto images_of = [this](const Table& table, TableValues& values) {
    return LabelledImages{std::move(values.bytes), KeptClassesOf(table)};
  };
  TableValues values = train_->read(), test_values;
  if (test_) test_values = test_->read();
  LabelledImages train = images_of(*train_, values);
  pixels_.Fill([&] { MeasureImages(train, values.of_all, spec); }, spec);
  auto set = std::make_unique<ImageSet>(spec, std::move(train),
                                        test_ ? images_of(*test_, test_values) : LabelledImages(),
                                        pixels_.augment(), seed);
  set->Note(notes_);
  return set;
}

std::unique_ptr<Dataset> TableSource::LoadNumbers() const {
  ImageSetSpec spec = spec_;
  LabelledNumbers train = NumbersOf(*train_);
  std::vector<int64_t> constant;
  pixels_.Fill([&] { constant = MeasureNumbers(train, spec); }, spec);
  DataNotes notes = notes_;
  NoteConstants(spec, constant, notes);
  if (spec.classes == 0) {
    constant = MeasureTargets(train_->labels.numbers, spec);
    for (const int64_t entry : constant) {
      notes.warnings.push_back(fmt::format(
          "{}the label has one value in all samples: nothing can be learned from it",
          spec.target_shape.count() == 1 ? "" : fmt::format("number {} of ", entry + 1)));
    }
  }
  // The reader of CSV has looked at all lines.
  if (images_ && spec.image_shape.rank() == 1) {
    NoteCounted(train.samples, spec.image_shape[0], notes);
  }
  auto set = std::make_unique<NumberSet>(spec, std::move(train),
                                         test_ ? NumbersOf(*test_) : LabelledNumbers());
  set->Note(std::move(notes));
  return set;
}

}  // namespace dtrain
