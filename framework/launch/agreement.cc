#include "framework/launch/agreement.h"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include "framework/comm/gather.h"
#include "framework/core/bytes.h"
#include "framework/launch/world.h"

namespace dtrain {
namespace {

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string Compare(const std::vector<Fact>& ours, const std::vector<Fact>& theirs, Rank rank) {
  std::string verdict;
  for (size_t i = 0; i < ours.size() && i < theirs.size(); ++i) {
    if (ours[i].value == theirs[i].value) continue;
    verdict += fmt::format("rank {} has another {} than rank 0 (- rank 0, + rank {}):\n{}", rank,
                           ours[i].name, rank, LineDiff(ours[i].value, theirs[i].value));
  }
  return verdict;
}

}  // namespace

std::string LineDiff(const std::string& ours, const std::string& theirs, int most) {
  const std::vector<std::string> a = Lines(ours);
  const std::vector<std::string> b = Lines(theirs);
  std::string diff;
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const std::string left = i < a.size() ? a[i] : "";
    const std::string right = i < b.size() ? b[i] : "";
    if (left == right) continue;
    if (most-- == 0) return diff + "  ...\n";
    diff += fmt::format("  - {}\n  + {}\n", left, right);
  }
  return diff;
}

void CheckAgreement(Transport& transport, const std::vector<Fact>& facts) {
  const std::vector<std::string> all = Gather(transport, ToBytes(facts));
  std::string verdict;
  for (size_t rank = 1; rank < all.size(); ++rank) {
    verdict += Compare(facts, FromBytes<std::vector<Fact>>(all[rank]), static_cast<Rank>(rank));
  }
  verdict = Broadcast(transport, verdict);
  if (verdict.empty()) return;
  throw SharedError(ExitCode::kUsage, "the ranks do not agree on the run\n" + verdict,
                    "start all ranks with the same program, config and data");
}

}  // namespace dtrain
