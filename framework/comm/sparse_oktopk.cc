#include "framework/comm/sparse_oktopk.h"

#include <algorithm>

#include "framework/core/check.h"
#include "framework/core/error.h"
#include "framework/core/layout.h"

namespace dtrain {
namespace {

size_t Index(int64_t i) { return static_cast<size_t>(i); }

// Returns the number of entries before each rank's, and at the end the number of all.
std::vector<int64_t> BeginsOf(const std::vector<SparseCount>& counts) {
  std::vector<int64_t> begins(counts.size() + 1, 0);
  for (size_t i = 0; i < counts.size(); ++i) begins[i + 1] = begins[i] + counts[i];
  return begins;
}

Range Common(const Range& a, const Range& b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

}  // namespace

OkTopK::OkTopK(Transport& transport, const CollectiveOptions& options)
    : SparseQueue("oktopk", transport, options),
      count_sum_(link()),
      split_(link()),
      to_owners_(Index(transport.size())),
      count_gather_(link()),
      counts_(Index(transport.size())),
      messages_(link()),
      gather_(link()) {
  Do([this] { BeginUnit(); });
  PlanRegions();
  PlanSplit();
  PlanThreshold();
  PlanGather();
  Do([this] { unit().calls += 1; });
}

void OkTopK::PlanRegions() {
  Do([this] {
    if (RegionsAreDue()) Vote();
  });
  Until([this] { return count_sum_.Advance(); });
  Do([this] {
    if (RegionsAreDue()) CutRegions();
  });
}

void OkTopK::PlanSplit() {
  Do([this] { BeginSplit(); });
  Until([this] { return split_.Advance(); });
  Do([this] {
    const std::vector<int64_t>& boundaries = unit().boundaries;
    const Range region = {boundaries[Index(link().rank())], boundaries[Index(link().rank()) + 1]};
    region_sum_.Begin(split_.received(), region, sums_);
  });
  Until([this] { return region_sum_.Advance(link()); });
}

void OkTopK::PlanThreshold() {
  Do([this] {
    bytes_before_ = link().traffic.bytes_received;
    largest_.Begin(call().k);
  });
  for (int digit = 0; digit < KthLargestSum::kDigits; ++digit) {
    Do([this] { counted_ = 0; });
    Until([this] { return !threshold_is_due_ || CountSums(); });
    Do([this] {
      if (threshold_is_due_) count_sum_.Begin(largest_.counts());
    });
    Until([this] { return count_sum_.Advance(); });
    Do([this] {
      if (threshold_is_due_) largest_.Next();
    });
  }
  Do([this] {
    if (threshold_is_due_) unit().threshold = largest_.bits();
    threshold_bytes_ += link().traffic.bytes_received - bytes_before_;
  });
}

void OkTopK::PlanGather() {
  Do([this] { threshold_cut_.Begin(sums_.entries(), unit().threshold, kept_); });
  Until([this] { return threshold_cut_.Advance(link()); });
  Do([this] { count_gather_.Begin(static_cast<SparseCount>(kept_.size())); });
  Until([this] { return count_gather_.Advance(); });
  Do([this] { Balance(); });
  Until([this] { return messages_.Through(); });
  Do([this] { gather_.BeginKnown(call().global, counts_); });
  Until([this] { return gather_.Advance(); });
  Do([this] {
    gather_.Parts(call().sum.parts);
    difference_.Begin(call().mine, call().sum.parts, call().returned);
  });
  Until([this] { return difference_.Advance(link()); });
}

void OkTopK::BeginUnit() {
  Unit& unit = this->unit();
  // After a resume with other buckets, the saved state belongs to another unit.
  if (unit.n != call().n) unit = {.n = call().n};
  // With one rank all entries are kept, without a threshold.
  threshold_is_due_ =
      link().size() > 1 && (unit.calls % kThresholdPeriod == 0 || unit.k != call().k);
  unit.k = call().k;
}

// Each rank with selected entries votes for the boundaries that would split its own entries evenly.
void OkTopK::Vote() {
  const int64_t count = call().mine.size();
  votes_.assign(Index(link().size()), 0);
  votes_[0] = count > 0 ? 1 : 0;
  for (int64_t i = 1; count > 0 && i < link().size(); ++i) {
    votes_[Index(i)] = call().mine.positions[Index(i * count / link().size())];
  }
  count_sum_.Begin(votes_);
}

void OkTopK::CutRegions() {
  Unit& unit = this->unit();
  const int64_t ranks = link().size();
  unit.boundaries.resize(Index(ranks + 1));
  for (int64_t i = 1; i < ranks; ++i) {
    unit.boundaries[Index(i)] =
        votes_[0] > 0 ? votes_[Index(i)] / votes_[0] : SplitEvenly({0, unit.n}, ranks, i).begin;
  }
  unit.boundaries.front() = 0;
  unit.boundaries.back() = unit.n;
}

void OkTopK::BeginSplit() {
  const std::span<const int32_t> positions = call().mine.positions;
  const std::vector<int64_t>& boundaries = unit().boundaries;
  int64_t begin = 0;
  for (size_t owner = 0; owner < to_owners_.size(); ++owner) {
    const auto end =
        std::lower_bound(positions.begin() + begin, positions.end(), boundaries[owner + 1]) -
        positions.begin();
    to_owners_[owner] = call().mine.Part(begin, end);
    begin = end;
  }
  split_.Begin(to_owners_);
}

bool OkTopK::CountSums() {
  const int64_t granted = link().Grant(sums_.size() - counted_, sizeof(float));
  largest_.Count(sums_.entries().Part(counted_, counted_ + granted).values);
  counted_ += granted;
  return counted_ == sums_.size();
}

// Puts this rank's part of the final all-gather into `global`: the entries that it kept or, if
// owners have very different numbers of them, its share of all kept entries in the order of
// positions.
void OkTopK::Balance() {
  const int ranks = link().size();
  for (Rank rank = 0; rank < ranks; ++rank) counts_[Index(rank)] = count_gather_.Of(rank);
  const std::vector<int64_t> begins = BeginsOf(counts_);
  const int64_t most = *std::max_element(counts_.begin(), counts_.end());
  if (most * ranks <= kUneven * begins.back()) {
    call().global.Append(kept_.entries());
    return;
  }
  for (Rank rank = 0; rank < ranks; ++rank) {
    counts_[Index(rank)] = static_cast<SparseCount>(ShareOf(rank, begins).size());
  }
  MoveShares(begins);
}

// Returns the entries, of all kept ones, that `rank` has after balancing.
Range OkTopK::ShareOf(Rank rank, const std::vector<int64_t>& begins) const {
  return SplitEvenly({0, begins.back()}, link().size(), rank);
}

// `begins`: the index of each owner's first kept entry, among all kept entries.
void OkTopK::MoveShares(const std::vector<int64_t>& begins) {
  const Rank own = link().rank();
  const auto kept_by = [&begins](Rank rank) {
    return Range{begins[Index(rank)], begins[Index(rank) + 1]};
  };
  const Range share = ShareOf(own, begins);
  SparseList& global = call().global;
  global.Resize(share.size());
  for (Rank rank = 0; rank < link().size(); ++rank) {
    const Range goes = Common(kept_by(own), ShareOf(rank, begins));
    const Range comes = Common(kept_by(rank), share);
    if (!goes.empty()) {
      const SparseEntries part =
          kept_.entries().Part(goes.begin - kept_by(own).begin, goes.end - kept_by(own).begin);
      if (rank == own) {
        global.Write(goes.begin - share.begin, part);
      } else {
        messages_.SendEntries(rank, part);
      }
    }
    if (comes.empty() || rank == own) continue;
    const int64_t at = comes.begin - share.begin;
    messages_.ReceiveEntries(rank, {global.positions() + at, global.values() + at, comes.size()});
  }
}

void OkTopK::Visit(StateVisitor& visitor) {
  DT_CHECK(Idle()) << "sums in flight";
  const size_t cuts = Index(link().size()) + 1;
  std::vector<int64_t> numbers, boundaries;
  for (const auto& [id, unit] : units_) {
    numbers.insert(numbers.end(), {id, unit.n, unit.k, unit.calls, unit.threshold});
    boundaries.insert(boundaries.end(), unit.boundaries.begin(), unit.boundaries.end());
  }
  visitor.Ints("units", numbers);
  visitor.Ints("boundaries", boundaries);
  constexpr size_t kNumbers = 5;
  if (boundaries.size() * kNumbers != numbers.size() * cuts) {
    throw CheckpointError(
        "saved regions of oktopk are not those of " + std::to_string(link().size()) + " workers",
        "resume with as many workers as before");
  }
  units_.clear();
  for (size_t i = 0; i * kNumbers < numbers.size(); ++i) {
    const int64_t* const unit = numbers.data() + i * kNumbers;
    const auto first = boundaries.begin() + static_cast<std::ptrdiff_t>(i * cuts);
    units_[static_cast<int>(unit[0])] = {
        .n = unit[1],
        .k = unit[2],
        .calls = unit[3],
        .threshold = static_cast<uint32_t>(unit[4]),
        .boundaries = {first, first + static_cast<std::ptrdiff_t>(cuts)}};
  }
}

namespace {

std::unique_ptr<SparseCollective> MakeOkTopK(Transport& transport,
                                             const CollectiveOptions& options) {
  return std::make_unique<OkTopK>(transport, options);
}

// All regions are supposed to have as many entries, so that nothing is moved to balance them.
std::vector<SparsePhase> OkTopKPhases(int ranks) {
  using Entries = SparsePhase::Entries;
  const SparsePhase regions = {.schedule = CountSumSchedule(ranks),
                               .fixed_bytes = ranks * static_cast<int64_t>(sizeof(int64_t)),
                               .period = OkTopK::kRegionPeriod};
  const SparsePhase split = {.schedule = {},
                             .exchanges = SparseSplit::Exchanges(ranks),
                             .messages = SparsePhase::kCounted,
                             .adds = true,
                             .fixed_bytes = sizeof(SparseCount),
                             .entries = Entries::kSelected,
                             .parts = ranks};
  const SparsePhase threshold = {.schedule = CountSumSchedule(ranks),
                                 .fixed_bytes = KthLargestSum::kCounts * sizeof(int64_t),
                                 .period = OkTopK::kThresholdPeriod,
                                 .repeats = KthLargestSum::kDigits,
                                 .for_thresholds = true};
  const SparsePhase counts = {.schedule = GatherSchedule(ranks),
                              .fixed_bytes = sizeof(SparseCount)};
  const SparsePhase gather = {.schedule = GatherSchedule(ranks),
                              .messages = SparsePhase::kKnown,
                              .entries = Entries::kAsked,
                              .parts = ranks};
  return {regions, split, threshold, counts, gather};
}

DTRAIN_SPARSE_COLLECTIVE(
    "oktopk", MakeOkTopK, OkTopKPhases,
    "the sums above a common threshold, each made by one owner: below 6 k words");

}  // namespace
}  // namespace dtrain
