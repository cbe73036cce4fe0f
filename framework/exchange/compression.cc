#include "framework/exchange/compression.h"

#include <algorithm>
#include <limits>

#include "framework/core/check.h"

namespace dtrain {
namespace {

// Returns how many times entries of this vector have been selected, this time included.  The ranges
// of a vector (layers or buckets) are compressed in ascending order, so the count rises with the
// first one.
int64_t CallOf(HostedActor& host, const CompressedRange& what) {
  if (what.range.begin == host.vectors.RangeOf(what.from).begin) ++host.compressions;
  return host.compressions;
}

// Returns the statistics to add to if they are due in this worker's step, else null.
GradientStatistics* StudyOf(const ExchangeSpec& spec, const HostedActor& host) {
  const bool due =
      spec.statistics != nullptr && spec.statistics->worker() == host.id && spec.statistics->due();
  return due && host.gradient != kNoVector ? spec.statistics : nullptr;
}

}  // namespace

Compression::Compression(const ExchangeSpec& spec, HostedActor& host, VectorOps& ops,
                         const CompressedRange& what)
    : spec_(spec),
      what_(what),
      compressor_(spec.actors.compress.compressor.get()),
      host_(host),
      vectors_(host.vectors),
      ops_(ops),
      range_(what.range),
      ghost_(spec.ghost),
      wire_(spec.actors.compress.wire()),
      whole_(what.density >= 1 && wire_ == Wire::kFp32),
      key_{spec.seed, host.id, CallOf(host, what), 0},
      device_residual_(host.device_residual),
      statistics_(StudyOf(spec, host)) {
  DT_CHECK(what.density > 0 && (!whole_ || vectors_.RangeOf(what.from) == range_))
      << host.actor->Describe();
  DT_CHECK(range_.end <= std::numeric_limits<int32_t>::max()) << "positions have 31 bits";
  DT_CHECK(wire_ == Wire::kFp32 || what.density >= 1) << "a cast sends all";
  DT_CHECK(whole_ || compressor_ != nullptr) << "no compressor; " << host.actor->Describe();
  next_ = range_.begin;
  vectors_.MakeDense(what.from);
  if (ghost_) return;
  if (!vectors_.Empty(what.from)) values_ = vectors_.Get(what.from).At(range_.begin);
  if (whole_ && statistics_ != nullptr) {
    statistics_->SentWhole(range_, vectors_.Data(host_.gradient) + range_.begin, true);
  }
  if (whole_ || (values_ == nullptr && device_residual_ == nullptr)) return;
  if (wire_ != Wire::kFp32) {
    if (what.rounded == nullptr) moved_ = vectors_.NewDense(range_.size());
    if (statistics_ != nullptr) {
      statistics_->BeginUnit(range_, vectors_.Data(host_.gradient) + range_.begin, values_);
    }
    return;
  }
  units_ =
      UnitsOf(spec.actors.compress.scope, range_, spec.layer_gradients.ranges, spec.actors.buckets);
  int64_t covered = 0;
  for (const Range& unit : units_) {
    covered += unit.size();
    room_ += compressor_->EntriesMost(unit.size(), what.density);
  }
  DT_CHECK(covered == range_.size()) << covered << " of " << range_.size() << " elements in units";
  moved_ = vectors_.NewSparse(room_);
}

bool Compression::RunSlice() {
  if (!ghost_ && values_ != nullptr && whole_ && CheckSlice()) return true;
  if (wire_ != Wire::kFp32) return RoundSlice();
  if (unit_ == units_.size()) {
    if (ghost_) count_ = CeilOfShare(what_.density, range_.size());
    return false;
  }
  if (selection_ == nullptr) BeginUnit();
  if (device_residual_ != nullptr) {
    SelectThere();
    return true;
  }
  const Range unit = units_[unit_];
  const Range slice{next_, std::min(unit.end, next_ + ops_.slice_elements())};
  const Range part{slice.begin - unit.begin, slice.end - unit.begin};
  const float* const values = values_ + (slice.begin - range_.begin);
  if (!checked_) finite_ &= ops_.Finite(values, slice.size());
  if (choosing_) {
    MoveOut(part);
  } else {
    selection_->Look(values, part);
  }
  next_ = slice.end;
  if (next_ == unit.end) EndPass();
  return true;
}

void Compression::BeginUnit() {
  const Range unit = units_[unit_];
  key_.unit = unit.begin;
  if (compressor_->carries_threshold()) key_.threshold = host_.thresholds[unit.begin];
  selection_ = compressor_->Select(unit.size(), what_.density, key_);
  checked_ = false;
  next_ = unit.begin;
  choosing_ = !selection_->WantsLook();
  if (statistics_ == nullptr) return;
  statistics_->BeginUnit(unit, vectors_.Data(host_.gradient) + unit.begin,
                         values_ + (unit.begin - range_.begin));
}

void Compression::EndPass() {
  checked_ = true;
  if (choosing_) return EndUnit();
  next_ = units_[unit_].begin;
  choosing_ = !selection_->WantsLook();
}

void Compression::EndUnit() {
  if (compressor_->carries_threshold()) {
    host_.thresholds[units_[unit_].begin] = selection_->Threshold();
  }
  if (statistics_ != nullptr) {
    const int64_t n = units_[unit_].size();
    statistics_->EndUnit(what_.density, compressor_->Asked(n, what_.density));
  }
  selection_ = nullptr;
  ++unit_;
}

// A whole unit is processed at once, since slices would need a round trip to the device each.
void Compression::SelectThere() {
  const Range unit = units_[unit_];
  DeviceValues& values = device_residual_->ValuesOf(unit);
  finite_ &= values.Finite();
  for (; !choosing_; choosing_ = !selection_->WantsLook()) selection_->LookOn(values);
  float* const room = moved_.MutableF32();
  int32_t* const positions = reinterpret_cast<int32_t*>(room) + count_;
  const int64_t chosen = selection_->ChooseOn(values, positions);
  DT_CHECK(count_ + chosen <= room_) << count_ + chosen << " entries of at most " << room_;
  device_residual_->TakeOut(unit, {positions, static_cast<size_t>(chosen)}, room + room_ + count_,
                            what_.masked != kNoVector);
  const auto offset = static_cast<int32_t>(unit.begin - what_.origin);
  for (int64_t i = 0; i < chosen; ++i) positions[i] += offset;
  count_ += chosen;
  EndUnit();
}

void Compression::MoveOut(Range part) {
  const int64_t unit = units_[unit_].begin;
  const Range slice{unit + part.begin, unit + part.end};
  float* const from = vectors_.SliceWithValues(what_.from, slice, ops_);
  float* const room = moved_.MutableF32();
  int32_t* const positions = reinterpret_cast<int32_t*>(room) + count_;
  const int64_t chosen =
      selection_->Choose(values_ + (slice.begin - range_.begin), part, positions);
  DT_CHECK(count_ + chosen <= room_) << count_ + chosen << " entries of at most " << room_;
  const auto offset = static_cast<int32_t>(unit - what_.origin);
  for (int64_t i = 0; i < chosen; ++i) positions[i] += offset;
  const int64_t first = slice.begin - what_.origin;
  ops_.MoveOut(from, first, positions, room + room_ + count_, chosen);
  if (statistics_ != nullptr) statistics_->Kept(from, slice.size(), chosen);
  if (what_.masked != kNoVector) {
    dropped_.resize(static_cast<size_t>(std::max<int64_t>(chosen, std::ssize(dropped_))));
    ops_.MoveOut(vectors_.SliceWithValues(what_.masked, slice, ops_), first, positions,
                 dropped_.data(), chosen);
  }
  count_ += chosen;
}

// Checks the next slice of a vector that is moved whole.  Returns false if all slices were checked.
bool Compression::CheckSlice() {
  if (next_ == range_.end) return false;
  const int64_t end = std::min(range_.end, next_ + ops_.slice_elements());
  finite_ &= ops_.Finite(values_ + (next_ - range_.begin), end - next_);
  next_ = end;
  return true;
}

// Rounds the next slice for a cast.  Returns false if all slices were rounded.
bool Compression::RoundSlice() {
  if (ghost_ || values_ == nullptr) return false;
  if (next_ == range_.end) {
    if (statistics_ != nullptr) statistics_->EndUnit(what_.density, range_.size());
    return false;
  }
  const Range slice{next_, std::min(range_.end, next_ + ops_.slice_elements())};
  float* const from = vectors_.SliceWithValues(what_.from, slice, ops_);
  float* const to = what_.rounded == nullptr ? moved_.MutableF32() : what_.rounded;
  finite_ &= ops_.Finite(from, slice.size());
  ops_.SplitRounded(wire_, to + (slice.begin - range_.begin), from, slice.size());
  if (statistics_ != nullptr) statistics_->Kept(from, slice.size(), slice.size());
  next_ = slice.end;
  return true;
}

VectorSlice Compression::Take() {
  if (whole_) {
    VectorSlice all = vectors_.Get(what_.from);
    vectors_.Clear(what_.from);
    return all;
  }
  if (wire_ != Wire::kFp32) return {std::move(moved_), 0, range_, kDense, 0, wire_};
  return {std::move(moved_), 0, range_, count_, room_};
}

CompressionReport Compression::report() const {
  const bool all = whole_ || wire_ != Wire::kFp32;
  CompressionReport report{.entries_sent = all ? range_.size() : count_, .entries = range_.size()};
  if (!whole_ && spec_.compress_cost.known()) {
    report.time = ChargedTime();
  } else {
    const int64_t passes = whole_ ? 1 : compressor_->passes();
    report.bytes = passes * range_.size() * static_cast<int64_t>(sizeof(float));
  }
  return report;
}

// Each unit is a selection of its own; a cast has no units.
Nanos Compression::ChargedTime() const {
  std::vector<Range> units = {range_};
  if (wire_ == Wire::kFp32) {
    units = UnitsOf(spec_.actors.compress.scope, range_, spec_.layer_gradients.ranges,
                    spec_.actors.buckets);
  }
  Nanos time = 0;
  for (const Range& unit : units) {
    time += spec_.compress_cost.SelectTime(unit.size(), what_.density);
  }
  return time;
}

bool RunSliceOf(Compression& compression, const Clock* clock, WorkDone& done) {
  const CompressionTimer timer(clock, done);
  const bool more = compression.RunSlice();
  ++done.selection_slices;
  if (!more) {
    const CompressionReport report = compression.report();
    done.compression.Add(report);
    done.bytes_written += report.bytes;
    done.finite &= compression.finite();
  }
  return more;
}

}  // namespace dtrain
