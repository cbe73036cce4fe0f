// EffectQueue: carries out the effects that the actors of a rank ask for, in the order of the
// requests.
//
// Work on vectors is done in slices (VectorOps), so that the caller can poll the network between
// two of them; meanwhile the actors get events.  Because of the order, "apply, then send the
// weights, then end the step" needs no event for the end of an update.
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

// There is one struct for each kind of effect that waits in the queue.
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
// First half of the all-reduce of a compressed gradient: residual += gradient (or the worker's
// velocity), then the selected entries are moved out of the residual and sent.  At density 1 all
// entries are sent.
struct ReduceEffect {
  Range range;
  double density = 1;
};
// The all-reduce of a range as it is: of a vector other than the gradient, or of the report alone.
struct SumEffect {
  VectorId vector;
  Range range;
};
// Second half, when the sum is complete: gradient = the sum, and returned entries are added to the
// residual.
struct ScatterEffect {
  Reduced reduced;
};

using Effect =
    std::variant<StartStepEffect, EndStepEffect, SendEffect, TakeEffect, AddEffect, BlendEffect,
                 ApplyEffect, ClearEffect, CompressEffect, ReduceEffect, SumEffect, ScatterEffect>;

// EffectTarget: carries out the effects that are not arithmetic on vectors.
class EffectTarget {
 public:
  virtual ~EffectTarget() = default;
  virtual void StartStep() = 0;
  virtual void EndStep(HostedActor& host, const StepOutcome& outcome) = 0;
  // `slice` is the version of the vector that is sent with the message, if there is one.
  virtual void Send(HostedActor& host, SendEffect& effect, std::optional<VectorSlice> slice) = 0;
  // Starts the all-reduce of selected entries.  `k`: the number of entries that was asked for.
  virtual void StartSum(HostedActor& host, Range range, VectorSlice selected, int64_t k) = 0;
  // Starts the all-reduce of a range that is not compressed.
  virtual void StartPlainSum(HostedActor& host, VectorId vector, Range range) = 0;
  // Starts the all-reduce of the gradient's range.
  virtual void StartDenseSum(Range range) = 0;
  // Does the same for values that a cast has rounded to 16 bits.  Errors of rounding the sums are
  // added to the residual.
  virtual void StartRoundedSum(HostedActor& host, Range range) = 0;
  virtual void EndSum(const Reduced& reduced) = 0;
};

class EffectQueue {
 public:
  // The references outlive the queue.  `threads`: threads that a solver update may use.  `clock`
  // measures the time of compression for compression(); null leaves it 0.
  EffectQueue(const ExchangeSpec& spec, VectorOps& ops, int threads, EffectTarget& target,
              const Clock* clock = nullptr);

  // `arrived` is the vector that kArrived stands for in this effect.
  void Push(HostedActor& host, Effect effect, const std::optional<VectorSlice>& arrived);

  // Carries out the next effect, or a slice of it.  Returns false if the queue is empty.
  bool RunSlice();

  bool empty() const { return items_.empty(); }
  // False once an update has written a NaN or an infinity, or a vector to be compressed had one.
  bool finite() const { return finite_; }
  const CompressionReport& compression() const { return compression_; }
  // Returns the number of bytes of vectors written so far.  The simulator charges time for them,
  // timelines show them.
  int64_t bytes_written() const { return bytes_written_; }
  // Slices of compressions so far, for timelines.
  int64_t selection_slices() const { return selection_slices_; }

 private:
  struct Item {
    HostedActor* host;
    Effect effect;
    std::optional<VectorSlice> arrived;

    // State while the effect is carried out: `source` is read, `remaining` has yet to be written.
    bool begun = false;
    VectorSlice source = {};
    Range remaining = {};
    double lr = 0;
    float gradient_scale = 1;
    // The new vector of a sparse sum, or of a sparse message that is sent as a dense one.
    VectorSlice written = {};
    double written_share = 1;  // bytes written / bytes of a dense vector
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
  void Run(Item& item, SumEffect& effect);
  void Run(Item& item, ScatterEffect& effect);

  void AddToResidual(Item& item);
  void TakeAll(Item& item);
  const float* UpdateVelocity(HostedActor& host, Range slice);
  void BeginCompression(Item& item, const CompressedRange& what);
  bool RunCompression(Item& item);
  // Returns the source's elements of the slice as dense memory, which is scratch if the source is
  // sparse.
  const float* SourceAt(const Item& item, Range slice);
  bool StaysSparse(const Item& item, const AddEffect& effect) const;
  void AddSparse(Item& item, const AddEffect& effect);
  void BeginReading(Item& item, VectorId from);
  void BeginUpdate(Item& item, const Update& update);
  void UpdateSlice(Item& item, Range slice);
  void EndUpdate(Item& item, const Update& update);
  void Combine(Item& item, VectorId to, double keep, double factor);
  // Calls work(slice) for the next slice of item.remaining.  A ghost run skips the call and
  // finishes the item at once.
  template <class Work>
  void RunSliceOf(Item& item, const Work& work);
  // The same for work on a device, as one slice: this thread only starts it, so the network need
  // not be polled in between.
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
