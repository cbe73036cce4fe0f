#include "framework/strategies/ps/describe.h"

#include <fmt/format.h>

#include "framework/core/text.h"

namespace dtrain::ps {

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

}  // namespace dtrain::ps
