// Actor: one participant of a protocol (a worker, a server, ...) as a pure state machine - events in,
// effects out.
//
// An actor does no I/O, reads no clock, starts no thread, sees no float and never asks whether it is
// simulated.  A Driver calls its On... functions one at a time and carries the effects out in order.
// Its whole state is a small struct, so saving it saves the protocol.
#pragma once

#include <cstdint>
#include <string>

#include "framework/core/range.h"

namespace dtrain {

// What an actor may ask for.  Ranges are pieces of the gradient and weight arenas.
class Effects {
 public:
  virtual ~Effects() = default;

  // The worker's next step may start with the newest weights.
  virtual void StartStep() = 0;
  // Sum this range of the gradient over all workers; OnReduced follows.  How (ordered, ring, ...) is
  // the collective's business.
  virtual void Reduce(Range range) = 0;
  // Solver update of this range of the weights with the reduced gradient; OnApplied follows.
  virtual void Apply(Range range) = 0;
  // The worker's step is over: its weights are the next version.
  virtual void EndStep() = 0;
};

class Actor {
 public:
  virtual ~Actor() = default;

  virtual void OnBegin(Effects& effects) = 0;                  // the trainer wants to start a step
  virtual void OnReady(Range range, Effects& effects) = 0;     // a gradient is final (backward order)
  virtual void OnReduced(Range range, Effects& effects) = 0;
  virtual void OnApplied(Range range, Effects& effects) = 0;

  // One line for the stall report: "allreduce: step 815, 2 of 3 buckets reduced, 1 in flight".
  virtual std::string Describe() const = 0;
};

}  // namespace dtrain
