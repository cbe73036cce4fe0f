// A set of workers or servers in words, for Describe().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dtrain::ps {

// Those i with member[i] != 0: "{0, 1}"; of many the first few: "{0, 1, 2, 3, 4, 5, 6, 7, ...}
// (2047)".
std::string DescribeMembers(const std::vector<int64_t>& member);

}  // namespace dtrain::ps
