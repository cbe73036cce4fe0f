// NetworkModel: the parameters of the simulated network (config section cluster.network).
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "framework/core/state_record.h"
#include "framework/core/time.h"
#include "framework/strategies/placement.h"

namespace dtrain {

// Holds the parameters of one class of link.  After being idle long enough for a full bucket, it passes min(line t,
// bucket + bandwidth t) bytes in t seconds: a token bucket, as Linux's tc-tbf shapes a NIC.
struct LinkModel {
  double bandwidth_gbit_s = 10;  // sustained payload bandwidth
  double latency_us = 50;        // from sending the first byte to its arrival
  // So many bytes pass at line rate after a pause; they are refilled at bandwidth.
  int64_t bucket_bytes = 0;
  double line_gbit_s = 0;  // at least the bandwidth; 0: no limit.  Used only with a bucket

  double bytes_per_ns() const { return bandwidth_gbit_s / 8; }
  double line_bytes_per_ns() const { return line_gbit_s / 8; }

  friend bool operator==(const LinkModel&, const LinkModel&) = default;
};

struct NetworkModel {
  enum class Queue {
    kFifo,  // one message at a time, in the order of arrival at the NIC
    kFair,  // all pairs of ranks with messages at the NIC share it, as TCP streams do
  };

  LinkModel between_nodes;
  LinkModel inside_node{.bandwidth_gbit_s = 80, .latency_us = 1};  // bucket and line are ignored
  int per_node = 1;  // workers; each dedicated server has a node of its own (NodesOfRanks)
  Queue queue = Queue::kFair;
  // Relative deviation of shares at the receiver (noise.h); kFair only.
  double share_deviation = 0;
  double message_overhead_us = 0;  // CPU time of a rank for each message, at both ends

  friend bool operator==(const NetworkModel&, const NetworkModel&) = default;
};

// Returns the node of each rank of a cluster that the config describes.  The workers are on the nodes that `placement`
// gives or, if it names none, in blocks of `per_node`.  Each dedicated server follows on a node of its own.
std::vector<int> NodesOfRanks(const Placement& placement, int per_node);

// Returns the whole nanosecond at which an event with a fractional time happens.  A time that is at most kRoundingNs
// after a whole nanosecond is rounded down to it: the excess is the rounding error of sums.
constexpr double kRoundingNs = 1e-3;
inline Nanos WholeNanos(double ns) { return static_cast<Nanos>(std::ceil(ns - kRoundingNs)); }

// TokenBucket: computes how many bytes a link passes in a time, and how long bytes take.
//
// A busy link passes min(line t, tokens + rate t) bytes in the next t nanoseconds; without a bucket, rate t.  This is
// pure arithmetic: the caller reports the bytes that have passed.
class TokenBucket {
 public:
  explicit TokenBucket(const LinkModel& link);  // starts full

  double TimeFor(double bytes) const;  // ns
  double BytesIn(double ns) const;

  // Reports that `bytes` have passed in the next `ns`.  Zero bytes: the link was idle.
  void Pass(double bytes, double ns);

  void Visit(StateVisitor& visitor) { VisitDouble(visitor, "tokens", tokens_); }

 private:
  double rate_;  // bytes per ns
  double line_;  // bytes per ns; infinite without a limit
  double size_;
  double tokens_;
};

}  // namespace dtrain
