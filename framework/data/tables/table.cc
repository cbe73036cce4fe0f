#include "framework/data/tables/table.h"

#include <algorithm>
#include <cmath>
#include <span>

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/data/images/image_set.h"

namespace dtrain {
namespace {

bool IsClass(double label) {
  return label >= 0 && label < kClassesMost && label == std::floor(label);
}

}  // namespace

bool IsRegression(const TableLabels& labels, Task task, bool whole_are_classes) {
  if (task != Task::kAuto) return task == Task::kRegression;
  if (!labels.words.empty()) return false;
  if (!whole_are_classes) return !labels.whole_type;
  return labels.shape.rank() > 0 || !std::ranges::all_of(labels.numbers, IsClass);
}

bool AreOneHot(const TableLabels& labels) {
  const auto width = static_cast<size_t>(labels.shape.count());
  if (width < 2) return false;
  for (size_t begin = 0; begin < labels.numbers.size(); begin += width) {
    const auto label = std::span(labels.numbers).subspan(begin, width);
    if (std::ranges::count(label, 1.0) != 1) return false;
    if (std::ranges::count(label, 0.0) != static_cast<std::ptrdiff_t>(width) - 1) return false;
  }
  return true;
}

std::vector<uint16_t> ClassesOf(const Table& table, int64_t classes) {
  const TableLabels& labels = table.labels;
  if (labels.shape.rank() > 0) {
    throw DataError(
        fmt::format("{}: each label has {} numbers, and a class is one number", table.name,
                    labels.shape.count()),
        AreOneHot(labels) ? kOneHotHint : "data.task: regression, for labels that are numbers");
  }
  const auto limit = static_cast<double>(classes > 0 ? classes : kClassesMost);
  std::vector<uint16_t> numbers;
  numbers.reserve(labels.numbers.size());
  for (size_t i = 0; i < labels.numbers.size(); ++i) {
    const double label = labels.numbers[i];
    if (!IsClass(label) || label >= limit) {
      throw DataError(fmt::format("{}: the label is {}, classes are the whole numbers from 0 to {}",
                                  table.where(static_cast<int64_t>(i)), label, limit - 1),
                      "number the classes from 0; or data.task: regression, for labels that are "
                      "numbers");
    }
    numbers.push_back(static_cast<uint16_t>(label));
  }
  return numbers;
}

void CheckNumbers(const Table& table) {
  const auto width = static_cast<size_t>(table.labels.shape.count());
  for (size_t i = 0; i < table.labels.numbers.size(); ++i) {
    if (std::isfinite(table.labels.numbers[i])) continue;
    throw DataError(
        fmt::format("{}: the label is {}, not a number",
                    table.where(static_cast<int64_t>(i / width)), table.labels.numbers[i]),
        "remove the sample, or give it a label");
  }
}

}  // namespace dtrain
