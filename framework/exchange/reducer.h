// Reducer: the sums over all workers that a step has asked for, in the order in which they were
// started.
//
// The report of a step rides behind its last range, in extra elements of the gradient arena (the
// tail), so all workers know loss, samples and stop without another message.
#pragma once

#include <deque>
#include <optional>

#include "framework/comm/collective.h"
#include "framework/core/layout.h"
#include "framework/strategies/report.h"

namespace dtrain {

class Reducer {
 public:
  static constexpr int kTailSize = 3;

  // `collective` outlives it; null: one worker, whose gradient is the sum.  `size`: of the arena.
  Reducer(Collective* collective, int64_t size) : collective_(collective), size_(size) {}

  bool IsLast(Range range) const { return range.end == size_; }

  // `gradients`: of the whole arena and its tail; null in a ghost run.
  void Start(Range range, float* gradients);
  // Moves what is in flight along a little; true when something moved.
  bool Progress() { return collective_ != nullptr && collective_->Progress(); }
  // The oldest range, once it is complete.
  std::optional<Range> Take();
  bool busy() const { return !running_.empty(); }
  Collective::Traffic traffic() const;

  static void WriteReport(const StepReport& report, float* tail);
  static StepOutcome ReadOutcome(const float* tail);

 private:
  struct Reduction {
    int64_t ticket;
    Range range;
  };

  Collective* const collective_;
  const int64_t size_;
  std::deque<Reduction> running_;
};

}  // namespace dtrain
