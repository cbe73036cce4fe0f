#include "framework/strategies/visit.h"

#include <fmt/format.h>

#include <bit>

#include "framework/core/error.h"
#include "framework/core/text.h"

namespace dtrain {

void VisitFixed(StateVisitor& visitor, std::string_view name, std::vector<int64_t>& values) {
  const size_t expected = values.size();
  visitor.Ints(name, values);
  if (values.size() == expected) return;
  throw CheckpointError(fmt::format("saved '{}' has {} instead of {}", name,
                                    Counted(std::ssize(values), "value"), expected),
                        "it was saved with another number of workers or servers");
}

void VisitFixed(StateVisitor& visitor, std::string_view name, std::vector<double>& values) {
  std::vector<int64_t> bits;
  for (const double value : values) bits.push_back(std::bit_cast<int64_t>(value));
  VisitFixed(visitor, name, bits);
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::bit_cast<double>(bits[i]);
}

std::string DescribeMembers(const std::vector<int64_t>& member) {
  constexpr size_t kShown = 8;
  std::vector<std::string> shown;
  size_t count = 0;
  for (size_t i = 0; i < member.size(); ++i) {
    if (member[i] != 0 && ++count <= kShown) shown.push_back(std::to_string(i));
  }
  if (count <= kShown) return fmt::format("{{{}}}", Join(shown));
  return fmt::format("{{{}, ...}} ({})", Join(shown), count);
}

}  // namespace dtrain
