#include "framework/checkpoint/weights_compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "framework/core/text.h"

namespace dtrain {
namespace {

struct TensorView {
  std::vector<int64_t> shape;
  std::span<const float> values;
};

std::map<std::string, TensorView> TensorsOf(const StoredWeights& stored) {
  std::map<std::string, TensorView> tensors;
  const auto add = [&](const ArenaLayout& layout, const std::vector<float>& arena) {
    for (const ArenaEntry& entry : layout.entries) {
      tensors[entry.name] = {entry.shape,
                             std::span(arena).subspan(entry.range.begin, entry.range.size())};
    }
  };
  add(stored.layout.parameters, stored.weights);
  add(stored.layout.state, stored.state);
  return tensors;
}

bool SameBits(float a, float b) { return std::memcmp(&a, &b, sizeof(a)) == 0; }

void CompareValues(const TensorView& a, const TensorView& b, TensorDifference& difference) {
  double squares = 0, difference_squares = 0;
  for (size_t i = 0; i < a.values.size(); ++i) {
    const double x = a.values[i], y = b.values[i];
    squares += x * x;
    if (SameBits(a.values[i], b.values[i])) continue;
    ++difference.elements;
    const double d =
        std::isfinite(x - y) ? std::abs(x - y) : std::numeric_limits<double>::infinity();
    difference.largest = std::max(difference.largest, d);
    difference_squares += d * d;
  }
  if (difference_squares > 0) difference.relative = std::sqrt(difference_squares / squares);
}

std::string NameOf(const StateField& field) {
  return field.owner.empty() ? field.name : fmt::format("{}: {}", field.owner, field.name);
}

std::string InWords(const std::vector<int64_t>& numbers) {
  constexpr size_t kShown = 8;
  if (numbers.size() == 1) return std::to_string(numbers[0]);
  if (numbers.size() <= kShown) return fmt::format("{}", numbers);
  return fmt::format("{} numbers", numbers.size());
}

void CompareVectors(const std::string& name, const StateField& a, const StateField& b,
                    const ArenaLayout& parameters, std::vector<TensorDifference>& differences) {
  ArenaLayout whole{{{"", {}, {0, static_cast<int64_t>(a.floats.size())}}}};
  const bool by_parameter = parameters.size() == whole.size();
  for (const ArenaEntry& part : by_parameter ? parameters.entries : whole.entries) {
    const auto values = [&](const StateField& field) {
      return TensorView{part.shape,
                        std::span(field.floats).subspan(part.range.begin, part.range.size())};
    };
    TensorDifference difference{part.name.empty() ? name : name + " " + part.name, "", 0, 0, 0};
    CompareValues(values(a), values(b), difference);
    if (difference.elements > 0) differences.push_back(std::move(difference));
  }
}

// An owner may have several fields of the same name, so fields are matched by position.
void CompareFields(const StateRecord& a, const StateRecord& b, const ArenaLayout& parameters,
                   std::vector<TensorDifference>& differences) {
  const size_t both = std::min(a.fields.size(), b.fields.size());
  for (size_t i = 0; i < both; ++i) {
    const StateField &x = a.fields[i], &y = b.fields[i];
    if (NameOf(x) != NameOf(y) || x.kind != y.kind) {
      differences.push_back({NameOf(x), fmt::format("{} in the second file", NameOf(y)), 0, 0, 0});
      return;  // the following fields no longer correspond
    }
    if (x.floats.size() != y.floats.size()) {
      differences.push_back(
          {NameOf(x),
           fmt::format("{} and {}", Counted(std::ssize(x.floats), "value"), std::ssize(y.floats)),
           0, 0, 0});
    } else if (!x.floats.empty()) {
      CompareVectors(NameOf(x), x, y, parameters, differences);
    } else if (x.ints != y.ints) {
      differences.push_back(
          {NameOf(x), fmt::format("{} and {}", InWords(x.ints), InWords(y.ints)), 0, 0, 0});
    }
  }
  if (a.fields.size() == b.fields.size()) return;
  differences.push_back(
      {"", fmt::format("{} and {} fields", a.fields.size(), b.fields.size()), 0, 0, 0});
}

}  // namespace

std::vector<TensorDifference> Compare(const RankCheckpoint& a, const RankCheckpoint& b,
                                      const ArenaLayout& parameters) {
  std::vector<TensorDifference> differences;
  CompareFields(a.exchange, b.exchange, parameters, differences);
  CompareFields(a.host, b.host, parameters, differences);
  for (TensorDifference& difference : differences) {
    difference.name = fmt::format("rank {}, {}", a.rank, difference.name);
  }
  return differences;
}

int64_t CountNonFinite(std::span<const float> values) {
  return std::ranges::count_if(values, [](float v) { return !std::isfinite(v); });
}

int64_t CountNonFinite(const RankCheckpoint& file) {
  int64_t found = 0;
  for (const StateRecord* record : {&file.exchange, &file.host}) {
    for (const StateField& field : record->fields) found += CountNonFinite(field.floats);
  }
  return found;
}

std::vector<TensorDifference> Compare(const StoredWeights& a, const StoredWeights& b) {
  const auto of_a = TensorsOf(a);
  auto of_b = TensorsOf(b);
  std::vector<TensorDifference> differences;
  for (const auto& [name, tensor] : of_a) {
    TensorDifference difference{name, "", 0, 0, 0};
    const auto other = of_b.find(name);
    if (other == of_b.end()) {
      difference.what = fmt::format("only in the first file: {}", tensor.shape);
    } else if (other->second.shape != tensor.shape) {
      difference.what = fmt::format("{} and {}", tensor.shape, other->second.shape);
    } else {
      CompareValues(tensor, other->second, difference);
    }
    if (other != of_b.end()) of_b.erase(other);
    if (!difference.what.empty() || difference.elements > 0) differences.push_back(difference);
  }
  for (const auto& [name, tensor] : of_b) {
    differences.push_back(
        {name, fmt::format("only in the second file: {}", tensor.shape), 0, 0, 0});
  }
  std::ranges::sort(differences, {}, &TensorDifference::name);
  return differences;
}

int64_t CountTensors(const StoredWeights& a, const StoredWeights& b) {
  auto all = TensorsOf(a);
  all.merge(TensorsOf(b));
  return static_cast<int64_t>(all.size());
}

NonFinite CountNonFinite(const StoredWeights& stored) {
  NonFinite found{CountNonFinite(stored.weights) + CountNonFinite(stored.state), 0};
  for (const auto& [vector, values] : stored.solver) found.solver += CountNonFinite(values);
  return found;
}

}  // namespace dtrain
