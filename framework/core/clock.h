// Clock: what time it is for a driver - the wall's, or the simulator's virtual time.
#pragma once

#include "framework/core/time.h"

namespace dtrain {

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
