#include "framework/setup/data_summary.h"

#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "framework/core/printable.h"
#include "framework/core/text.h"
#include "framework/data/images/image_set.h"

namespace dtrain {
namespace {

constexpr size_t kClassesShown = 5, kColumnsShown = 8, kNamed = 10;

// Returns the first names of many.
std::string Some(const std::vector<std::string>& names, size_t most) {
  const std::vector<std::string> shown(
      names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(most, names.size())));
  if (shown.size() == names.size()) return Join(shown);
  return fmt::format("{} and {} more", Join(shown), names.size() - shown.size());
}

std::string SamplesOf(const Dataset& dataset) {
  std::vector<std::string> parts = {fmt::format("{} training", dataset.size(Split::kTrain))};
  if (dataset.has_validation()) {
    parts.push_back(fmt::format("{} validation", dataset.size(Split::kValidation)));
  }
  parts.push_back(fmt::format("{} test samples", dataset.size(Split::kTest)));
  const std::string last = parts.back();
  parts.pop_back();
  return Join(parts) + " and " + last;
}

std::string SampleOf(const ImageSetSpec& info) {
  const std::string shape = fmt::format("{}", fmt::join(info.image_shape.extents(), " x "));
  if (!info.numbers) return "images of " + shape;
  if (info.image_shape.rank() != 1) return "numbers of " + shape;
  std::vector<std::string> columns;
  for (const std::string& column : info.columns) columns.push_back(Printable(column));
  return Counted(info.image_shape[0], "column") +
         (columns.empty() ? "" : fmt::format(" ({})", Some(columns, kColumnsShown)));
}

using Counts = std::array<std::vector<int64_t>, std::size(kSplits)>;

Counts CountClasses(const Dataset& dataset) {
  Counts counts;
  for (const Split split : kSplits) {
    std::vector<int64_t>& of_split = counts[static_cast<size_t>(split)];
    of_split.resize(static_cast<size_t>(dataset.classes()));
    for (const uint16_t label : dataset.ClassOf(split)) ++of_split[label];
  }
  return counts;
}

// Returns the classes, as names, of which `counts` has no sample.
std::vector<std::string> WithoutSamples(const std::vector<int64_t>& counts, size_t first,
                                        const std::vector<std::string>& names) {
  std::vector<std::string> without;
  for (size_t c = first; c < counts.size(); ++c) {
    if (counts[c] == 0) without.push_back(names[c]);
  }
  return without;
}

void WarnOfClasses(const Dataset& dataset, const Counts& counts, bool named,
                   const std::vector<std::string>& names, DataSummary& data) {
  // It is the smallest label of the files, whatever data.limit leaves of them.
  const auto first = named ? 0 : static_cast<size_t>(dataset.notes()->first_class);
  if (first > 0) {
    data.warnings.push_back(fmt::format(
        "the labels begin at {}, and classes are counted from 0: {} no sample, and the model needs "
        "{} outputs; subtract {} from the labels{}",
        first, first == 1 ? "class 0 has" : fmt::format("classes 0 to {} have", first - 1),
        names.size(), first,
        first == 1 ? "" : ", or set data.task: regression if they are numbers"));
  }
  if (names.size() == 1)
    data.warnings.push_back("all samples are of one class: '" + names[0] + "'");
  for (const Split split : {Split::kTrain, Split::kTest}) {
    if (dataset.size(split) == 0) continue;
    const auto without = WithoutSamples(counts[static_cast<size_t>(split)], first, names);
    if (without.empty()) continue;
    data.warnings.push_back(
        fmt::format("{} no {} sample: {}", without.size() == 1 ? "a class has" : "classes have",
                    split == Split::kTrain ? "training" : "test", Some(without, kNamed)));
  }
}

void DescribeClasses(const Dataset& dataset, DataSummary& data) {
  if (dataset.ClassOf(Split::kTrain).empty()) return;
  data.classes = dataset.classes();
  const Counts counts = CountClasses(dataset);
  const ImageSetSpec* const info = dataset.image_info();
  const bool named = info != nullptr && std::ssize(info->class_names) == data.classes;
  std::vector<std::string> names;
  for (int64_t c = 0; c < data.classes; ++c) {
    names.push_back(named ? Printable(info->class_names[static_cast<size_t>(c)])
                          : std::to_string(c));
  }
  const std::vector<int64_t>& train = counts[static_cast<size_t>(Split::kTrain)];
  std::vector<size_t> order(names.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t c) { return train[c]; });
  order.resize(std::min(order.size(), kClassesShown));
  for (const size_t c : order) data.fewest.emplace_back(names[c], train[c]);
  WarnOfClasses(dataset, counts, named, names, data);
}

}  // namespace

std::optional<DataSummary> DescribeData(const Dataset& dataset) {
  const DataNotes* const notes = dataset.notes();
  if (notes == nullptr) return std::nullopt;
  DataSummary data;
  data.files = notes->files;
  data.samples = SamplesOf(dataset);
  if (dataset.image_info() != nullptr) data.sample = SampleOf(*dataset.image_info());
  data.read_as = notes->read_as;
  data.left_out = notes->left_out;
  data.warnings = notes->warnings;
  DescribeClasses(dataset, data);
  return data;
}

std::string TextOf(const DataSummary& data, const std::string& name) {
  std::string text = fmt::format("{} {}: {}", name, Printable(data.files), data.samples);
  if (!data.sample.empty()) text += " of " + data.sample;
  if (!data.read_as.empty()) text += "; " + data.read_as;
  if (!data.fewest.empty()) {
    std::vector<std::string> fewest;
    for (const auto& [class_name, samples] : data.fewest) {
      fewest.push_back(fmt::format("{} ({})", class_name, samples));
    }
    text += fmt::format("; classes: {}, fewest training samples: {}", data.classes, Join(fewest));
  }
  if (!data.left_out.empty()) text += "; left out: " + Join(data.left_out, "; ");
  return text;
}

}  // namespace dtrain
