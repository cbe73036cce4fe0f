// Actor: one participant of a protocol (a worker, a server, ...) as a pure state machine - events
// in, effects out.
//
// An actor does no I/O, reads no clock, starts no thread, sees no float of a vector and never asks
// whether it is simulated.  A Driver calls its On... functions one at a time and carries the
// effects out in the order in which they were asked for.  The actor's struct (Visit) and its named
// vectors are its whole state: saving them saves the protocol.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/core/layout.h"
#include "framework/core/state_visitor.h"
#include "framework/core/time.h"
#include "framework/strategies/message.h"
#include "framework/strategies/report.h"

namespace dtrain {

// Index into the actor's Vectors().
using VectorId = int;
constexpr VectorId kNoVector = -1;
constexpr VectorId kArrived = -2;  // what came with the message that is being handled

enum class VectorRole {
  kGradient,  // a worker's: written by the backward pass
  kWeights,   // a worker's: what it computes with; begins as the model's weights
  kMaster,    // weights that Apply updates, the solver's state beside them; begin as the model's.
              // In a worker without kWeights also what it computes with.
  kResidual,  // a worker's, of the name kResidualName: what a compressor has kept back; begins
              // empty.  With another number of workers the first one goes on with the sum of all.
  kVelocity,  // a worker's, of the name kVelocityName: the momentum that it keeps before its gradient is
              // compressed; begins empty
  kPlain,  // anything else; begins empty, which counts as zeros
};

inline constexpr char kResidualName[] = "residual";
inline constexpr char kVelocityName[] = "velocity";

struct VectorSpec {
  std::string name;  // "weights", "sum", ...
  VectorRole role = VectorRole::kPlain;
  Range range;  // of the arena
  // It is sent to actors of the same node, who shall read it where it lies; gradients and masters are
  // in any case.
  bool handed_on = false;
};

// A vector that rides with a message: all of it, or the part within `range`.
struct Payload {
  VectorId vector = kNoVector;
  Range range = {};  // empty: all of it
};

// One solver step on the master's weights.
struct Update {
  VectorId gradient = kNoVector;  // a vector of the actor, or kArrived
  Range range = {};               // empty: all of the gradient's
  double gradient_factor = 1;     // times the gradient, before all else (1/C: the mean of a sum)
  double lr_factor = 1;           // times the schedule's rate; staleness damping, q/W
  int64_t samples = 0;            // behind this gradient: the schedule follows their sum
};

// Where a run stands when all is quiescent.
struct QuiescentState {
  int64_t samples_applied = 0;
  bool last = false;   // the end of the run: accumulators are flushed
  int64_t steps = 0;   // whole global batches, of all workers together
  int64_t epochs = 0;  // whole ones, the same
  // Workers that have died so far, as far as this actor's rank knows: that of server 0 does.
  std::vector<ActorId> gone = {};
};

// What an actor may ask for.  Ranges are pieces of the arena.  Effects on vectors and Sends happen
// in order; a Send takes the version that the vector then has, so changing the vector afterwards is
// safe.
class Effects {
 public:
  virtual ~Effects() = default;

  // --- a worker's step
  virtual void StartStep() = 0;                          // it may be computed now
  virtual void EndStep(const StepOutcome& outcome) = 0;  // it is over
  // Sum this range of the gradient over all workers; OnReduced follows.  How (ordered, ring, ...)
  // is the collective's business.
  virtual void Reduce(Range range) = 0;

  // --- messages and time
  virtual void Send(ActorId to, Message message, Payload payload = {}) = 0;
  virtual void SetTimer(int timer, Nanos delay) = 0;  // OnTimer(timer) follows
  // When the event that is handled happened, by the clock of the actor's rank: for durations, not
  // for comparing ranks.  A record keeps it, so that a replay hears the same.
  virtual Nanos Time() = 0;

  // --- vectors
  // `to` becomes `from`: by reference where `from` covers all of it, else its part is copied.
  // `from` (when it is one of the actor's) is empty afterwards.
  virtual void Take(VectorId to, VectorId from = kArrived) = 0;
  virtual void Add(VectorId to, VectorId from, double factor = 1) = 0;  // to += factor * from
  virtual void Blend(VectorId to, VectorId from,
                     double share) = 0;  // to = (1-share) to + share from
  virtual void Apply(const Update& update) = 0;
  virtual void Clear(VectorId vector) = 0;  // zeros
  // `to` becomes the entries of `from` that the run's compressor picks, about this part of all;
  // they become zero in `from`, so that sent + kept = accumulated, to the bit.  All of them where
  // `density` is 1 or more: that needs no compressor.  Two vectors of the actor, of one range.
  // A NaN or infinity in `from` ends the run, picked or not.
  //
  // `to` is then sparse, if it is not everything: its messages have the size of what is in them, and
  // Add and Apply of such a message see zeros elsewhere.
  virtual void Compress(VectorId to, VectorId from, double density) = 0;
};

class Actor {
 public:
  virtual ~Actor() = default;

  virtual std::vector<VectorSpec> Vectors() const = 0;

  // --- what happens to a worker
  virtual void OnBegin(Effects&) {}                   // the trainer wants to start a step
  virtual void OnReady(Range, Effects&) {}            // a gradient is final (backward order)
  virtual void OnEnd(const StepReport&, Effects&) {}  // all of the step's gradient is final
  virtual void OnReduced(Range, Effects&) {}
  // The last range's reduction carries the reports of all workers.
  virtual void OnOutcome(const StepOutcome&, Effects&) {}

  // --- what happens to anybody
  // All is quiescent: no step runs, no message is on its way.  What the actor asks for now is carried
  // out, and all is quiescent again, before the run pauses for evaluation, a checkpoint or its end.
  // Not where each rank decides alone about quiescence (synchronous without servers).
  virtual void OnQuiescent(const QuiescentState&, Effects&) {}
  virtual void OnMessage(ActorId, const Message&, Effects&) {}
  virtual void OnTimer(int, Effects&) {}

  // --- death, which the simulator alone knows (over MPI a lost rank ends the run)
  // To a node: one of its workers has died.  Comes behind the last message of that worker.
  virtual void OnGone(ActorId /*worker*/, Effects&) {}
  // It has died itself, and only counts from here on: what it has is lost, and so is what comes.
  virtual void OnDeath() {}
  virtual void OnLostMessage(ActorId /*from*/, const Message&) {}

  // At a boundary, to a worker that sums in buckets: it does so in these from now on, which cover the same as
  // those before.
  virtual void OnBuckets(const std::vector<Range>&) {}

  // Of a master that is one of several replicas: its weight in their mean, which is the model at
  // rest.  They add up to 1.
  virtual double MasterShare() const { return 1; }

  // At a boundary: gradients that it holds for others who are there in this run only, in words ("3 gradients
  // that no server has pulled"); "" when there are none.  With other workers or servers they would be
  // lost, so a run does not go on with them.
  virtual std::string Holds() const { return ""; }

  virtual void Visit(StateVisitor& visitor) = 0;
  // One line for the stall report: "ps_ssp server 0: clocks 815 815 813 811, waiting {0, 1}".
  virtual std::string Describe() const = 0;
  // Adds what it has counted so far.
  virtual void Report(ProtocolReport&) const {}
};

}  // namespace dtrain
