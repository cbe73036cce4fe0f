// Time as the whole program counts it: integer nanoseconds.
//
// Wall time and the simulator's virtual time share these types, so that nothing that runs under
// both (strategies, drivers) can tell which it has.
#pragma once

#include <chrono>
#include <cstdint>

namespace dtrain {

using Nanos = int64_t;

constexpr double ToSeconds(Nanos ns) { return static_cast<double>(ns) * 1e-9; }
// What integers have no place for becomes the longest time that can still be added to a clock's, 146 years; NaN is 0.
constexpr Nanos FromSeconds(double seconds) {
  constexpr double kMost = 0x1p62;
  const double ns = seconds * 1e9;
  return ns != ns ? 0 : static_cast<Nanos>(ns > kMost ? kMost : ns < -kMost ? -kMost : ns);
}

// Monotonic wall time.  Not for strategies: they see the Clock of their driver.
inline Nanos WallNow() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Clock: what time it is for a driver - the wall's, or the simulator's virtual time.
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
