// NetworkModel: what the simulated network is made of (config section cluster.network).
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "framework/core/state_record.h"
#include "framework/core/time.h"
#include "framework/strategies/placement.h"

namespace dtrain {

// One class of link.  In t seconds it passes min(line t, bucket + bandwidth t) bytes when it was
// idle long enough for a full bucket: a token bucket, as Linux's tc-tbf shapes a NIC.
struct LinkModel {
  double bandwidth_gbit_s = 10;  // of payload, in the long run
  double latency_us = 50;        // from the first byte sent to the first byte there
  int64_t bucket_bytes = 0;      // may pass at line rate after a pause; filled at bandwidth
  double line_gbit_s = 0;        // at least the bandwidth; 0: no limit.  Counts with a bucket only

  double bytes_per_ns() const { return bandwidth_gbit_s / 8; }
  double line_bytes_per_ns() const { return line_gbit_s / 8; }

  friend bool operator==(const LinkModel&, const LinkModel&) = default;
};

struct NetworkModel {
  enum class Queue {
    kFifo,  // one message at a time, in the order of arrival at the NIC
    kFair,  // all pairs of ranks that have messages there share the NIC, as TCP streams do
  };

  LinkModel between_nodes;
  LinkModel inside_node{.bandwidth_gbit_s = 80, .latency_us = 1};  // bucket and line do not count
  int per_node = 1;  // workers; dedicated servers have nodes of their own (NodesOfRanks)
  Queue queue = Queue::kFair;
  double share_deviation = 0;      // relative, of shares at the receiver (noise.h); kFair only
  double message_overhead_us = 0;  // processor time of a rank for each message, at both ends

  friend bool operator==(const NetworkModel&, const NetworkModel&) = default;
};

// The node of each rank when nodes are filled one after the other.
std::vector<int> NodesInOrder(int ranks, int per_node);

// The one map of a cluster that is described and not found: the workers as `placement` has them or, where
// it names no nodes, in blocks of `per_node`; each dedicated server on a node of its own behind them.
std::vector<int> NodesOfRanks(const Placement& placement, int per_node);

// The whole nanosecond at which something computed in fractions has happened.  What lies closer
// than this past one is taken as being there: rounding errors of sums.
constexpr double kRoundingNs = 1e-3;
inline Nanos WholeNanos(double ns) { return static_cast<Nanos>(std::ceil(ns - kRoundingNs)); }

// TokenBucket: how many bytes a link passes in a time, and how long bytes take.
//
// From now on, while it is kept busy: min(line t, tokens + rate t) bytes in t nanoseconds.  Without
// a bucket that is rate t.  Pure arithmetic; who uses it says what passed.
class TokenBucket {
 public:
  explicit TokenBucket(const LinkModel& link);  // full

  double TimeFor(double bytes) const;  // ns
  double BytesIn(double ns) const;

  // `bytes` have passed in the next `ns`.  Zero bytes: the link was idle.
  void Pass(double bytes, double ns);

  void Visit(StateVisitor& visitor) { VisitDouble(visitor, "tokens", tokens_); }

 private:
  double rate_;  // bytes a ns
  double line_;  // infinite without a limit
  double size_;
  double tokens_;
};

}  // namespace dtrain
