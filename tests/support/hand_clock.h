// A clock that a test sets.
#pragma once

#include "framework/core/time.h"

namespace dtrain {

class HandClock : public Clock {
 public:
  Nanos Now() const override { return now; }
  Nanos now = 0;
};

}  // namespace dtrain
