#include "framework/cluster/network_model.h"

#include <algorithm>
#include <limits>

#include "framework/core/check.h"

namespace dtrain {

std::vector<int> NodesOfRanks(const Placement& placement, int per_node) {
  std::vector<int> nodes = placement.NodesOfWorkers(per_node);
  int next = nodes.empty() ? 0 : *std::max_element(nodes.begin(), nodes.end()) + 1;
  while (static_cast<int>(nodes.size()) < placement.ranks()) nodes.push_back(next++);
  return nodes;
}

TokenBucket::TokenBucket(const LinkModel& link)
    : rate_(link.bytes_per_ns()),
      line_(link.line_gbit_s > 0 ? link.line_bytes_per_ns()
                                 : std::numeric_limits<double>::infinity()),
      size_(static_cast<double>(link.bucket_bytes)),
      tokens_(size_) {
  DT_CHECK(rate_ > 0) << "bandwidth of " << link.bandwidth_gbit_s << " Gbit/s";
  DT_CHECK(line_ >= rate_) << "line rate of " << link.line_gbit_s
                           << " Gbit/s below the bandwidth of " << link.bandwidth_gbit_s;
}

double TokenBucket::TimeFor(double bytes) const {
  const double at_rate = (bytes - tokens_) / rate_;
  return size_ > 0 ? std::max(bytes / line_, at_rate) : at_rate;
}

double TokenBucket::BytesIn(double ns) const {
  const double at_rate = tokens_ + rate_ * ns;
  // Tests size_ first: an infinite line rate times zero nanoseconds is NaN.
  return size_ > 0 && line_ * ns < at_rate ? line_ * ns : at_rate;
}

void TokenBucket::Pass(double bytes, double ns) {
  tokens_ = std::clamp(tokens_ + rate_ * ns - bytes, 0.0, size_);
}

}  // namespace dtrain
