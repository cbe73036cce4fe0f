// Reducer: the all-reduces of a step, in the order in which they were started.  Each sums a range
// of the gradient arena over all workers, or the entries of it that a compressor selected, or a
// range of another vector.
//
// The report of a step follows its last range, in extra elements of the gradient arena (the tail),
// so all workers learn loss, samples and stop without another message.  With a compressor the tail
// is all-reduced separately, as a dense vector.
#pragma once

#include <deque>
#include <map>
#include <optional>

#include "framework/comm/collective.h"
#include "framework/comm/sparse_collective.h"
#include "framework/core/layout.h"
#include "framework/exchange/all_reduce_times.h"
#include "framework/exchange/message_channel.h"
#include "framework/strategies/actor.h"

namespace dtrain {

// Holds the result of an all-reduce.
struct Reduced {
  VectorId vector = kNoVector;  // kNoVector: the gradient
  Range range;
  int64_t selection = -1;  // ticket of a sparse sum; -1 for a dense one
  // Points to the sum of selected entries, valid until Reducer::Release.  Positions are relative to
  // the range's begin.  Null: the sum is dense and has replaced the vector.
  const SparseCollective::Sum* sum = nullptr;
};

// Where the gradient is in a device's memory, the reports of steps are not: `tail` is in host memory, and `collective`
// adds it, which is null with one worker.
struct HostReports {
  float* tail = nullptr;
  Collective* collective = nullptr;
};

class Reducer {
 public:
  static constexpr int kTailSize = 3;

  // The collectives outlive it.  They are null with one worker, whose gradient is the sum.  `size`:
  // elements of the arena.  `times` writes each all-reduce to a timeline; it may be null.
  Reducer(Collective* collective, SparseCollective* sparse, int64_t size,
          AllReduceTimes* times = nullptr, const HostReports& reports = {})
      : collective_(collective), sparse_(sparse), size_(size), times_(times), reports_(reports) {}

  // `range` is one of the gradient.
  bool IsLast(Range range) const { return range.end == size_; }

  // Notes that the next all-reduce was requested.  Its measured time begins, though its entries may
  // have to be selected first.
  void Ask() {
    if (times_ != nullptr) times_->Asked();
  }
  // Starts the all-reduce of a range.  `gradients`: the whole arena and its tail; null in a ghost
  // run.
  void Start(Range range, float* gradients);
  // Does the same for a range of another vector; `data`: the elements of the range.
  void StartVector(VectorId vector, Range range, float* data);
  // Does the same for the entries that were selected from the range.  `k`: the number of entries
  // that was asked for.  `unit`: index of the range in the step, the same in every step.
  void StartSelected(Range range, int unit, VectorSlice selected, int64_t k, float* gradients);
  // Does the same for values that are rounded to 16 bits (Collective::StartRounded).  `rounding`
  // has the rounding errors of the range.
  void StartRounded(Range range, const Rounding& rounding, float* gradients);
  // Describes words that a coder (compress/coding.h) sends in one of its rounds.
  struct Words {
    Range range;
    std::span<float> words;  // null data in a ghost run; kept by the caller until the sum is taken
    bool gathered = false;   // to all workers, as pairs; else they are summed as floats
    int unit = 0;            // index of the range in the step
    bool last = false;       // the last round of the range
  };
  void StartWords(const Words& words, float* gradients);
  // Advances the running all-reduces a little.  Returns true if anything moved.
  bool Progress();
  // Returns the oldest all-reduce if it is complete.
  std::optional<Reduced> Take();
  // Returns the entries that this rank selected for a sum, valid until Release.
  SparseEntries SelectedFor(const Reduced& reduced) const;
  // Releases the sum of selected entries, which is not valid afterwards.
  void Release(const Reduced& reduced);
  bool busy() const { return !running_.empty(); }
  Collective::Traffic traffic() const;

  // Returns the memory of a step's report.
  float* TailOf(float* gradients) const {
    return reports_.tail != nullptr ? reports_.tail : gradients + size_;
  }
  static void WriteReport(const StepReport& report, float* tail);
  static void WriteNotFinite(float* tail);  // makes the loss of ReadOutcome NaN on all ranks
  static StepOutcome ReadOutcome(const float* tail);
  static StepOutcome OutcomeAlone(const StepReport& report);  // for a run with one worker

 private:
  struct Reduction {
    VectorId vector = kNoVector;
    Range range;
    int64_t dense = kNone;      // ticket of the dense collective
    int64_t tail = kNone;       // ticket of the tail, if it is all-reduced separately
    int64_t selection = kNone;  // ticket of the sparse collective
    bool ends = false;          // the last of its step
    bool timed = true;          // false: a round of a coder that another one follows
  };
  // Holds the entries that this rank selected, kept until Release.
  struct Selected {
    VectorSlice slice;
    SparseCollective::Sum alone;  // the sum in a run with one worker
  };
  static constexpr int64_t kNone = -1;

  static int64_t StartDense(Collective* collective, float* data, int64_t count);
  Collective* OfReports() const {
    return reports_.tail != nullptr ? reports_.collective : collective_;
  }
  int64_t StartTail(Range range, float* gradients);
  int64_t StartEntries(int unit, int64_t n, int64_t k, const SparseEntries& mine);

  Collective* const collective_;
  SparseCollective* const sparse_;
  const int64_t size_;
  AllReduceTimes* const times_;
  const HostReports reports_;
  std::deque<Reduction> running_;
  std::map<int64_t, Selected> selected_;  // by ticket
  int64_t alone_ = 0;                     // next ticket in a run with one worker
};

}  // namespace dtrain
