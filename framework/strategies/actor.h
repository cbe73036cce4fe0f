// Actor: one participant of a protocol (a worker, a server, ...) as a pure state machine: events
// in, effects out.
//
// An actor does no I/O, reads no clock, starts no thread, reads no element of a vector and cannot
// know whether it is simulated.  A Driver calls its On... functions one at a time and carries out
// the effects in the order in which the actor asked for them.  The fields that Visit visits and the
// named vectors are the actor's whole state, so saving them saves the protocol.
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

// VectorId is an index into the actor's Vectors().
using VectorId = int;
constexpr VectorId kNoVector = -1;
constexpr VectorId kArrived = -2;  // the vector that came with the message being handled

enum class VectorRole {
  kGradient,  // of a worker: written by the backward pass
  kWeights,   // of a worker: the weights that it computes with, initially the model's
  kMaster,    // weights that Apply updates, with the solver's state; initially the model's.  A
              // worker that has no kWeights computes with its kMaster.
  kResidual,  // of a worker, named kResidualName: what the compressor did not send; initially
              // empty.  If a run resumes with another number of workers, the first one begins with
              // the sum of all.
  kVelocity,  // of a worker, named kVelocityName: the momentum of its gradient before compression;
              // initially empty
  kPlain,     // anything else; initially empty, which counts as zeros
};

inline constexpr char kResidualName[] = "residual";
inline constexpr char kVelocityName[] = "velocity";

struct VectorSpec {
  std::string name;  // "weights", "sum", ...
  VectorRole role = VectorRole::kPlain;
  Range range;  // the part of the arena that it covers
  // Allocate it in shared memory, because it is sent to actors of the same node, which read it in
  // place.  Gradients and masters are always allocated so.
  bool handed_on = false;
};

// Describes the vector that is sent with a message: all of it, or the part within `range`.
struct Payload {
  VectorId vector = kNoVector;
  Range range = {};  // empty: all of it
};

// Describes one solver step on the master's weights.
struct Update {
  VectorId gradient = kNoVector;  // a vector of the actor, or kArrived
  Range range = {};               // empty: the whole range of the gradient
  double gradient_factor = 1;     // factor of the gradient, applied first (1/C: the mean of C)
  double lr_factor = 1;           // factor of the learning rate (staleness damping, q/W)
  int64_t samples = 0;            // samples in this gradient; the learning rate follows their sum
};

// Holds the state of a run when all is quiescent.
struct QuiescentState {
  int64_t samples_applied = 0;
  bool last = false;   // the end of the run: accumulators are flushed
  int64_t steps = 0;   // complete global batches of all workers together
  int64_t epochs = 0;  // complete epochs of all workers together
  // Lists the workers that are known to have died.  Only the rank of server 0 knows all of them.
  std::vector<ActorId> gone = {};
};

// Effects: the actions that an actor may ask for.  Ranges are parts of the gradient arena.  Effects
// on vectors and Sends happen in order.  A Send takes the version that the vector has at that
// point, so changing the vector afterwards is safe.
class Effects {
 public:
  virtual ~Effects() = default;

  // --- a worker's step
  virtual void StartStep() = 0;                          // it may be computed now
  virtual void EndStep(const StepOutcome& outcome) = 0;  // it is over
  // All-reduces this range of a vector over all workers; OnReduced follows.  The collective of the
  // run decides on the algorithm (ordered, ring, ...).  All workers ask for the same ranges in the
  // same order.
  //
  // The gradient is reduced by the run's compressor, and the step's report with its last range.  An
  // empty range at the gradient's end reduces the report alone.  Any other vector becomes the sum,
  // element by element, and the actor must not use it in between.
  virtual void Reduce(VectorId vector, Range range) = 0;

  // --- messages and time
  virtual void Send(ActorId to, Message message, Payload payload = {}) = 0;
  virtual void SetTimer(int timer, Nanos delay) = 0;  // OnTimer(timer) follows
  // Returns the time of the event being handled, by the clock of the actor's rank.  Use it for
  // durations; clocks of different ranks are not comparable.  A record keeps it, so that a replay
  // gets the same value.
  virtual Nanos Time() = 0;

  // --- vectors
  // `to` becomes `from`: by reference if `from` covers all of it, else the part that `from` covers
  // is copied.  If `from` is a vector of the actor, it is empty afterwards.
  virtual void Take(VectorId to, VectorId from = kArrived) = 0;
  virtual void Add(VectorId to, VectorId from, double factor = 1) = 0;  // to += factor * from
  // `to` moves towards `from`: to = (1 - share) to + share from.
  virtual void Blend(VectorId to, VectorId from, double share) = 0;
  virtual void Apply(const Update& update) = 0;
  virtual void Clear(VectorId vector) = 0;  // zeros
  // `to` becomes the entries of `from` that the run's compressor selects, about `density` of all.
  // They become zero in `from`, so that sent + kept = accumulated, to the bit.  With a `density` of
  // 1 or more all entries are taken, and no compressor is needed.  Both are vectors of the actor
  // with the same range.  A NaN or infinity in `from` ends the run, selected or not.
  //
  // `to` is sparse afterwards, unless it has all entries.  Messages with it have the size of its
  // entries, and Add and Apply of such a message treat the other elements as zeros.
  virtual void Compress(VectorId to, VectorId from, double density) = 0;
};

class Actor {
 public:
  virtual ~Actor() = default;

  virtual std::vector<VectorSpec> Vectors() const = 0;

  // --- events of a worker
  virtual void OnBegin(Effects&) {}         // the trainer wants to start a step
  virtual void OnReady(Range, Effects&) {}  // a layer's gradient is final (backward order)
  virtual void OnEnd(const StepReport&, Effects&) {}  // the step's whole gradient is final
  virtual void OnReduced(VectorId, Range, Effects&) {}
  // Receives the summed reports of all workers; it is called before OnReduced of the step's last
  // range of the gradient.
  virtual void OnOutcome(const StepOutcome&, Effects&) {}

  // --- events of any actor
  // All is quiescent: no step runs, and no message is in flight.  Effects that the actor asks for
  // now are carried out, and all is quiescent again, before the run pauses for evaluation, a
  // checkpoint or its end.  Synchronous strategies without servers do not get this event, since
  // there each rank decides alone about boundaries.
  virtual void OnQuiescent(const QuiescentState&, Effects&) {}
  virtual void OnMessage(ActorId, const Message&, Effects&) {}
  virtual void OnTimer(int, Effects&) {}

  // --- death, only in the simulator (over MPI a lost rank ends the run)
  // A worker of this node has died.  It arrives after the last message of that worker.
  virtual void OnGone(ActorId /*worker*/, Effects&) {}
  // This actor has died and only counts from now on: its gradients and those that still arrive
  // (OnLostMessage) are lost.
  virtual void OnDeath() {}
  virtual void OnLostMessage(ActorId /*from*/, const Message&) {}

  // Returns the weight of this master in the model at a boundary.  Where the model is the mean of
  // replicas (ModelPlace), the weights add up to 1.  A master with weight 0 is not part of the
  // model.
  virtual double MasterShare() const { return 1; }

  // Describes gradients that the actor holds at a boundary for other actors ("3 gradients that no
  // server has pulled"); "" if there are none.  They would be lost in a run with another number of
  // workers or servers, so a checkpoint with them cannot be resumed by such a run.
  virtual std::string Holds() const { return ""; }

  virtual void Visit(StateVisitor& visitor) = 0;
  // Returns one line for the stall report: "ps_ssp server 0: clocks 815 815 813 811, waiting {0,
  // 1}".
  virtual std::string Describe() const = 0;
  // Adds what the actor has counted so far.  `report` has the counters of the strategy
  // (Strategy::counters).
  virtual void Report(ProtocolReport&) const {}
};

}  // namespace dtrain
