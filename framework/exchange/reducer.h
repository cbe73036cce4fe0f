// Reducer: the sums over all workers that a step has asked for, in the order in which they were
// started: of ranges of the gradient arena, or of what a compressor has selected of them.
//
// The report of a step rides behind its last range, in extra elements of the gradient arena (the
// tail), so all workers know loss, samples and stop without another message.  With a compressor it
// goes by itself, dense.
#pragma once

#include <deque>
#include <map>
#include <optional>

#include "framework/comm/collective.h"
#include "framework/comm/sparse_collective.h"
#include "framework/core/layout.h"
#include "framework/exchange/message_channel.h"
#include "framework/exchange/sum_times.h"
#include "framework/strategies/report.h"

namespace dtrain {

// What a sum has come to.
struct Reduced {
  Range range;
  int64_t selection = -1;  // ticket of its sum; a dense one has none
  // Of selections, positions counted from the range's begin; until Reducer::Release.  Null: the sum is
  // where the gradient was.
  const SparseCollective::Sum* sum = nullptr;
};

class Reducer {
 public:
  static constexpr int kTailSize = 3;

  // The collectives outlive it; null: one worker, whose gradient is the sum.  `size`: of the arena.
  // `times` gets to know how long each sum takes; null: nobody wants to.
  Reducer(Collective* collective, SparseCollective* sparse, int64_t size, SumTimes* times = nullptr)
      : collective_(collective), sparse_(sparse), size_(size), times_(times) {}

  bool IsLast(Range range) const { return range.end == size_; }

  // The next one has been asked for: its time begins, though entries may have to be selected first.
  void Ask() {
    if (times_ != nullptr) times_->Asked();
  }
  // `gradients`: of the whole arena and its tail; null in a ghost run.
  void Start(Range range, float* gradients);
  // The same for what was selected of the range, `k` entries or about as many; `unit`: which of a
  // step's it is, the same from step to step.
  void StartSelected(Range range, int unit, Piece selected, int64_t k, float* gradients);
  // The same for a range of values that are rounded to 16 bits (Collective::StartRounded).  `errors`:
  // the range's.
  void StartRounded(Range range, const Rounding& rounding, float* gradients);
  // Moves what is in flight along a little; true when something moved.
  bool Progress();
  // The oldest one, once it is complete.
  std::optional<Reduced> Take();
  // Of selections: nobody looks at the sum any more.
  void Release(const Reduced& reduced);
  bool busy() const { return !running_.empty(); }
  Collective::Traffic traffic() const;

  static void WriteReport(const StepReport& report, float* tail);
  static void WriteNotFinite(float* tail);  // ReadOutcome then says so, at all ranks
  static StepOutcome ReadOutcome(const float* tail);
  static StepOutcome OutcomeAlone(const StepReport& report);  // of one worker

 private:
  struct Reduction {
    Range range;
    int64_t dense = kNone;      // ticket
    int64_t tail = kNone;       // ticket, where the report goes by itself
    int64_t selection = kNone;  // ticket
  };
  // What a rank has selected, until its sum is no longer needed.
  struct Selected {
    Piece piece;
    SparseCollective::Sum alone;  // of one worker
  };
  static constexpr int64_t kNone = -1;

  int64_t StartDense(float* data, int64_t count);
  int64_t StartTail(Range range, float* gradients);
  bool DenseDone(int64_t ticket) const { return ticket == kNone || collective_->Done(ticket); }

  Collective* const collective_;
  SparseCollective* const sparse_;
  const int64_t size_;
  SumTimes* const times_;
  std::deque<Reduction> running_;
  std::map<int64_t, Selected> selected_;  // by ticket
  int64_t alone_ = 0;                     // tickets, of one worker
};

}  // namespace dtrain
