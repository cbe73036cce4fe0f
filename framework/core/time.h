// Time is counted in integer nanoseconds in the whole program.
//
// Wall time and the simulator's virtual time share these types, so that code that runs under both (strategies, drivers)
// does not depend on which it is.
#pragma once

#include <chrono>
#include <cstdint>

namespace dtrain {

using Nanos = int64_t;

constexpr double ToSeconds(Nanos ns) { return static_cast<double>(ns) * 1e-9; }
// Times beyond +-2^62 ns (146 years) become that limit, which can still be added to a clock's time; NaN becomes 0.
constexpr Nanos FromSeconds(double seconds) {
  constexpr double kMost = 0x1p62;
  const double ns = seconds * 1e9;
  return ns != ns ? 0 : static_cast<Nanos>(ns > kMost ? kMost : ns < -kMost ? -kMost : ns);
}

// Returns the monotonic wall time.  Strategies must not call it; they get their driver's Clock.
inline Nanos WallNow() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Clock gives a driver's time: wall time, or the simulator's virtual time.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Nanos Now() const = 0;
};

class WallClock : public Clock {
 public:
  Nanos Now() const override { return WallNow(); }
};

}  // namespace dtrain
