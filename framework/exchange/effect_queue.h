// EffectQueue: what the actors of a rank have asked for, carried out in that order.
//
// Work on vectors goes on in slices (VectorOps), so that whoever asks for it can look at the
// network in between; events reach the actors meanwhile.  So "apply, then send the weights, then
// end the step" needs no event that says when an update is done.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "framework/core/time.h"
#include "framework/exchange/compression.h"
#include "framework/exchange/hosted_actor.h"
#include "framework/exchange/reducer.h"
#include "framework/exchange/vector_ops.h"

namespace dtrain {

// One struct for each effect of Effects that waits for its turn.
struct StartStepEffect {};
struct EndStepEffect {
  StepOutcome outcome;
};
struct SendEffect {
  ActorId to;
  Message message;
  Payload payload;
};
struct TakeEffect {
  VectorId to, from;
};
struct AddEffect {
  VectorId to, from;
  double factor;
};
struct BlendEffect {
  VectorId to, from;
  double share;
};
struct ApplyEffect {
  Update update;
};
struct ClearEffect {
  VectorId vector;
};
struct CompressEffect {
  VectorId to, from;
  double density;
};
// A sum of what a compressor selects.  On its way out: residual += gradient (or the worker's velocity),
// and the selection leaves the residual; at density 1 all of that is sent.
struct ReduceEffect {
  Range range;
  double density = 1;
};
// And when it has come: gradient = the sum, and what is returned goes back to the residual.
struct ScatterEffect {
  Reduced reduced;
};

using Effect =
    std::variant<StartStepEffect, EndStepEffect, SendEffect, TakeEffect, AddEffect, BlendEffect,
                 ApplyEffect, ClearEffect, CompressEffect, ReduceEffect, ScatterEffect>;

// Who carries out what is not about vectors.
class EffectTarget {
 public:
  virtual ~EffectTarget() = default;
  virtual void StartStep() = 0;
  virtual void EndStep(HostedActor& host, const StepOutcome& outcome) = 0;
  // `piece`: the version of the vector that rides with it, where there is one.
  virtual void Send(HostedActor& host, SendEffect& effect, std::optional<Piece> piece) = 0;
  // `k`: how many entries were asked for.
  virtual void StartSum(HostedActor& host, Range range, Piece selected, int64_t k) = 0;
  virtual void StartDenseSum(Range range) = 0;
  // Of values that a cast has rounded, in the gradient; what rounding of sums leaves goes to the residual.
  virtual void StartRoundedSum(HostedActor& host, Range range) = 0;
  virtual void EndSum(const Reduced& reduced) = 0;
};

class EffectQueue {
 public:
  // All outlive it.  `threads`: of the team of the thread that calls, for solver updates.  `clock`:
  // of the report on compression; null for none.
  EffectQueue(const ExchangeSpec& spec, VectorOps& ops, int threads, EffectTarget& target,
              const Clock* clock = nullptr);

  // `arrived`: what kArrived means for this effect.
  void Push(HostedActor& host, Effect effect, const std::optional<Piece>& arrived);

  // Carries out the next effect, or a slice of it; false when there is none.
  bool RunSlice();

  bool empty() const { return items_.empty(); }
  // False once an update here has written a NaN or an infinity, or there was one among what was to
  // be compressed.
  bool finite() const { return finite_; }
  const CompressionReport& compression() const { return compression_; }
  // Of vectors, so far: for who charges for it (the simulator) or notes it (timelines).
  int64_t bytes_written() const { return bytes_written_; }
  // Of the slices so far, those of selections: for timelines.
  int64_t selection_slices() const { return selection_slices_; }

 private:
  struct Item {
    HostedActor* host;
    Effect effect;
    std::optional<Piece> arrived;

    // While it is carried out: what it reads, and what is left to be written.
    bool begun = false;
    Piece source = {};
    Range remaining = {};
    double lr = 0;
    float gradient_scale = 1;
    Piece written = {};  // what becomes of a sparse sum, or of a message that goes out as dense
    double written_share = 1;  // bytes written, as part of a dense vector's
    std::unique_ptr<Compression> compression = nullptr;
  };

  void Run(Item& item, StartStepEffect&);
  void Run(Item& item, EndStepEffect& effect);
  void Run(Item& item, SendEffect& effect);
  void Run(Item& item, TakeEffect& effect);
  void Run(Item& item, AddEffect& effect);
  void Run(Item& item, BlendEffect& effect);
  void Run(Item& item, ApplyEffect& effect);
  void Run(Item& item, ClearEffect& effect);
  void Run(Item& item, CompressEffect& effect);
  void Run(Item& item, ReduceEffect& effect);
  void Run(Item& item, ScatterEffect& effect);

  void AddToResidual(Item& item);
  void TakeAll(Item& item);
  const float* UpdateVelocity(HostedActor& host, Range slice);
  void BeginCompression(Item& item, const CompressedRange& what);
  bool RunCompression(Item& item);
  // Of what an item reads: dense memory for the slice, which is scratch where the source is sparse.
  const float* SourceAt(const Item& item, Range slice);
  bool StaysSparse(const Item& item, const AddEffect& effect) const;
  void AddSparse(Item& item, const AddEffect& effect);
  void BeginReading(Item& item, VectorId from);
  void BeginUpdate(Item& item, const Update& update);
  void UpdateSlice(Item& item, Range slice);
  void EndUpdate(Item& item, const Update& update);
  void Combine(Item& item, VectorId to, double keep, double factor);
  // Calls work(slice) for the next slice of what is left; a ghost has none to work on.
  template <class Work>
  void RunSliceOf(Item& item, const Work& work);
  // The same where a device works: in one go, since slices are there to let this thread look at the
  // network in between, and it only asks the device.
  template <class Work>
  void RunOnDevice(Item& item, const Work& work);
  template <class Work>
  void RunUpTo(int64_t most, Item& item, const Work& work);

  const ExchangeSpec& spec_;
  VectorOps& ops_;
  const int threads_;
  EffectTarget& target_;
  const Clock* const clock_;
  const LearningRate learning_rate_;
  std::list<Item> items_;
  std::vector<float> scratch_;  // a slice of a sparse source
  CompressionReport compression_;
  bool finite_ = true;
  int64_t bytes_written_ = 0, selection_slices_ = 0;
};

}  // namespace dtrain
