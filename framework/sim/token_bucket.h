// TokenBucket: how many bytes a link passes in a time, and how long bytes take.
//
// From now on, while it is kept busy: min(line t, tokens + rate t) bytes in t nanoseconds.  Without
// a bucket that is rate t.  Pure arithmetic; who uses it says what passed.
#pragma once

#include <cmath>

#include "framework/core/time.h"
#include "framework/sim/network_model.h"

namespace dtrain {

// The whole nanosecond at which something computed in fractions has happened.  What lies closer
// than this past one is taken as being there: rounding errors of sums.
constexpr double kRoundingNs = 1e-3;
inline Nanos WholeNanos(double ns) { return static_cast<Nanos>(std::ceil(ns - kRoundingNs)); }

class TokenBucket {
 public:
  explicit TokenBucket(const LinkModel& link);  // full

  double TimeFor(double bytes) const;  // ns
  double BytesIn(double ns) const;

  // `bytes` have passed in the next `ns`.  Zero bytes: the link was idle.
  void Pass(double bytes, double ns);

 private:
  double rate_;  // bytes a ns
  double line_;  // infinite without a limit
  double size_;
  double tokens_;
};

}  // namespace dtrain
