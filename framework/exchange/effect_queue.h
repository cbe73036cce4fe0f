// EffectQueue: carries out the effects that the actors of a rank ask for, in the order of the
// requests.
//
// Work on vectors is done in slices (VectorOps), so that the caller can poll the network between
// two of them; meanwhile the actors get events.  Because of the order, "apply, then send the
// weights, then end the step" needs no event for the end of an update.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "framework/core/time.h"
#include "framework/exchange/compression.h"
#include "framework/exchange/hosted_actor.h"
#include "framework/exchange/sliced_work.h"
#include "framework/exchange/vector_ops.h"

namespace dtrain {

// There is one struct for each kind of effect that waits in the queue.
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
// Anything else, in its turn.  `slice` does a part of it and returns true if there is more.
struct WorkEffect {
  std::function<bool()> slice;
};

using Effect = std::variant<SendEffect, TakeEffect, AddEffect, BlendEffect, ApplyEffect,
                            ClearEffect, CompressEffect, WorkEffect>;

class EffectQueue {
 public:
  // Sends a message.  `slice` is the version of the vector that goes with it, if there is one.
  using Post =
      std::function<void(HostedActor& host, SendEffect& effect, std::optional<VectorSlice> slice)>;

  // The references outlive the queue.  `threads`: threads that a solver update may use.  `clock`
  // measures the time of compression; null leaves it 0.
  EffectQueue(const ExchangeSpec& spec, VectorOps& ops, int threads, Post post,
              const Clock* clock = nullptr);

  // `arrived` is the vector that kArrived stands for in this effect.
  void Push(HostedActor& host, Effect effect, const std::optional<VectorSlice>& arrived);

  // Carries out the next effect, or a slice of it.  Returns false if the queue is empty.
  bool RunSlice();

  bool empty() const { return items_.empty(); }
  const WorkDone& done() const { return done_; }
  WorkDone& done() { return done_; }

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
    const float* more_scale = nullptr;  // UpdateArgs
    // The new vector of a sparse sum, or of a sparse message that is sent as a dense one.
    VectorSlice written = {};
    double written_share = 1;  // bytes written / bytes of a dense vector
    std::unique_ptr<Compression> compression = nullptr;
    bool more = false;  // there are more slices of it (WorkEffect, CompressEffect)
  };

  void Run(Item& item, SendEffect& effect);
  void Run(Item& item, TakeEffect& effect);
  void Run(Item& item, AddEffect& effect);
  void Run(Item& item, BlendEffect& effect);
  void Run(Item& item, ApplyEffect& effect);
  void Run(Item& item, ClearEffect& effect);
  void Run(Item& item, CompressEffect& effect);
  void Run(Item& item, WorkEffect& effect);

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
  // Calls work(slice) for the next slice of item.remaining.
  template <class Work>
  void RunSliceOf(Item& item, const Work& work) {
    NextSlice(item.remaining, ops_.slice_elements(), spec_.ghost, item.written_share, done_, work);
  }

  const ExchangeSpec& spec_;
  VectorOps& ops_;
  const int threads_;
  const Post post_;
  const Clock* const clock_;
  const LearningRate learning_rate_;
  std::list<Item> items_;
  std::vector<float> scratch_;  // a slice of a sparse source
  WorkDone done_;
};

}  // namespace dtrain
