#include "framework/exchange/reducer.h"

#include <limits>
#include <utility>

namespace dtrain {
namespace {

enum Tail { kSamples, kLoss, kStop };
static_assert(kStop + 1 == Reducer::kTailSize);

}  // namespace

int64_t Reducer::StartDense(Collective* collective, float* data, int64_t count) {
  return collective == nullptr ? kNone : collective->Start({data, static_cast<size_t>(count)});
}

void Reducer::Start(Range range, float* gradients) {
  float* const data = gradients == nullptr ? nullptr : gradients + range.begin;
  Reduction reduction{.range = range, .ends = IsLast(range)};
  if (reports_.tail == nullptr) {
    const int64_t count = range.size() + (IsLast(range) ? kTailSize : 0);
    reduction.dense = StartDense(collective_, data, count);
  } else {
    if (!range.empty()) reduction.dense = StartDense(collective_, data, range.size());
    reduction.tail = StartTail(range, gradients);
  }
  running_.push_back(reduction);
}

void Reducer::StartVector(VectorId vector, Range range, float* data) {
  running_.push_back(
      {.vector = vector, .range = range, .dense = StartDense(collective_, data, range.size())});
}

// Starts the all-reduce of the tail if this is the last range.
int64_t Reducer::StartTail(Range range, float* gradients) {
  if (!IsLast(range)) return kNone;
  return StartDense(OfReports(), gradients == nullptr ? nullptr : TailOf(gradients), kTailSize);
}

void Reducer::StartRounded(Range range, const Rounding& rounding, float* gradients) {
  Reduction reduction{.range = range, .ends = IsLast(range)};
  if (collective_ != nullptr) {
    float* const data = gradients == nullptr ? nullptr : gradients + range.begin;
    reduction.dense =
        collective_->StartRounded({data, static_cast<size_t>(range.size())}, rounding);
  }
  reduction.tail = StartTail(range, gradients);
  running_.push_back(reduction);
}

void Reducer::StartSelected(Range range, int unit, VectorSlice selected, int64_t k,
                            float* gradients) {
  Reduction reduction{.range = range, .tail = StartTail(range, gradients), .ends = IsLast(range)};
  const auto count = static_cast<size_t>(selected.entries);
  reduction.selection = StartEntries(unit, range.size(), k,
                                     {{selected.positions(), count}, {selected.values(), count}});
  selected_[reduction.selection].slice = std::move(selected);
  running_.push_back(reduction);
}

int64_t Reducer::StartEntries(int unit, int64_t n, int64_t k, const SparseEntries& mine) {
  const int64_t ticket = sparse_ == nullptr ? alone_++ : sparse_->Start(unit, n, k, mine);
  Selected& kept = selected_[ticket];
  if (sparse_ == nullptr) kept.alone.parts = {mine};
  return ticket;
}

// Words that are gathered travel as entries, half of them as positions.  The collective `gather` does not look at what
// they are.
void Reducer::StartWords(const Words& words, float* gradients) {
  const bool ends = words.last && IsLast(words.range);
  Reduction reduction{.range = words.range,
                      .tail = ends ? StartTail(words.range, gradients) : kNone,
                      .ends = ends,
                      .timed = words.last};
  float* const data = words.words.data();
  const size_t count = words.words.size();
  if (words.gathered) {
    const size_t half = count / 2;
    const SparseEntries mine{{reinterpret_cast<const int32_t*>(data), half},
                             {data == nullptr ? nullptr : data + half, half}};
    reduction.selection =
        StartEntries(words.unit, static_cast<int64_t>(count), static_cast<int64_t>(half), mine);
  } else {
    reduction.dense = StartDense(collective_, data, static_cast<int64_t>(count));
  }
  running_.push_back(reduction);
}

bool Reducer::Progress() {
  bool moved = collective_ != nullptr && collective_->Progress();
  if (sparse_ != nullptr) moved |= sparse_->Progress();
  if (reports_.collective != nullptr) moved |= reports_.collective->Progress();
  return moved;
}

std::optional<Reduced> Reducer::Take() {
  if (running_.empty()) return std::nullopt;
  const Reduction oldest = running_.front();
  if (oldest.dense != kNone && !collective_->Done(oldest.dense)) return std::nullopt;
  if (oldest.tail != kNone && !OfReports()->Done(oldest.tail)) return std::nullopt;
  Reduced reduced{oldest.vector, oldest.range};
  if (oldest.selection != kNone) {
    if (sparse_ != nullptr && !sparse_->Done(oldest.selection)) return std::nullopt;
    reduced.selection = oldest.selection;
    reduced.sum =
        sparse_ == nullptr ? &selected_.at(oldest.selection).alone : &sparse_->Of(oldest.selection);
  }
  running_.pop_front();
  if (times_ != nullptr && oldest.timed) times_->Done(oldest.ends);
  return reduced;
}

SparseEntries Reducer::SelectedFor(const Reduced& reduced) const {
  const VectorSlice& slice = selected_.at(reduced.selection).slice;
  const auto count = static_cast<size_t>(slice.entries);
  return {{slice.positions(), count}, {slice.values(), count}};
}

void Reducer::Release(const Reduced& reduced) {
  if (sparse_ != nullptr) sparse_->Release(reduced.selection);
  selected_.erase(reduced.selection);
}

Collective::Traffic Reducer::traffic() const {
  Collective::Traffic total =
      collective_ == nullptr ? Collective::Traffic{} : collective_->traffic();
  if (sparse_ != nullptr) total.Add(sparse_->traffic());
  if (reports_.collective != nullptr) total.Add(reports_.collective->traffic());
  return total;
}

void Reducer::WriteReport(const StepReport& report, float* tail) {
  tail[kSamples] = static_cast<float>(report.samples);
  tail[kLoss] = static_cast<float>(report.loss_sum);
  tail[kStop] = report.stop ? 1.0f : 0.0f;
}

void Reducer::WriteNotFinite(float* tail) { tail[kLoss] = std::numeric_limits<float>::quiet_NaN(); }

StepOutcome Reducer::ReadOutcome(const float* tail) {
  return {static_cast<int64_t>(tail[kSamples]), tail[kLoss], tail[kStop] != 0, true};
}

StepOutcome Reducer::OutcomeAlone(const StepReport& report) {
  float tail[kTailSize];
  WriteReport(report, tail);
  return ReadOutcome(tail);
}

}  // namespace dtrain
