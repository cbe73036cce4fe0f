#include "framework/comm/schedule_run.h"

#include "framework/comm/sum.h"

namespace dtrain {
namespace {

Range RangeOf(const Move& move) { return {move.block, move.block + move.count}; }

bool Overlap(Range a, Range b) { return a.begin < b.end && b.begin < a.end; }

}  // namespace

void ScheduleRun::Begin(const CollectiveSchedule& schedule, Tag tag, std::span<float> data,
                        float* scratch, const Rounding& rounding) {
  schedule_ = &schedule;
  tag_ = tag;
  data_ = data;
  scratch_ = scratch_begin_ = scratch;
  next_ = 0;
  round_ = 0;
  fetched_.clear();
  rounding_ = rounding;
  staged_ = {};
  if (rounding.wire != Wire::kFp32 && staging_.size() < data.size()) staging_.resize(data.size());
}

bool ScheduleRun::finished() const {
  return next_ == schedule_->moves.size() && arrivals_.empty() && sends_.empty();
}

bool ScheduleRun::Advance() {
  const int64_t events_before = events_;
  while (next_ < schedule_->moves.size() && TryMove(schedule_->moves[next_])) {
    ++next_;
    ++events_;
  }
  if (next_ == schedule_->moves.size() && TestArrivals()) TestSends({0, schedule_->blocks});
  return events_ != events_before;
}

bool ScheduleRun::TryMove(const Move& move) {
  if (move.round != round_) {
    if (!TestArrivals()) return false;
    round_ = move.round;
    scratch_ = scratch_begin_;
    fetched_.clear();
  }
  const Range range =
      BlockOf(static_cast<int64_t>(data_.size()), schedule_->blocks, move.block, move.count);
  if (range.empty()) return true;
  if (move.kind == MoveKind::kSum && !TestArrivals()) return false;
  const bool sends_rounded = move.kind == MoveKind::kSend && rounding_.wire != Wire::kFp32;
  const bool stages = sends_rounded && !Staged(range);
  if ((move.writes() || stages) && !TestSends(RangeOf(move))) return false;
  if (stages) Stage(range);
  if (move.writes()) staged_ = {};
  const std::span<float> block = data_.subspan(range.begin, range.size());
  switch (move.kind) {
    case MoveKind::kFetch:
      Fetch(move, block);
      break;
    case MoveKind::kSend:
      Send(move, block);
      break;
    case MoveKind::kReceive:
      Receive(move, block);
      break;
    case MoveKind::kSum:
      Sum(block);
      break;
  }
  return true;
}

void ScheduleRun::Fetch(const Move& move, std::span<float> block) {
  const std::span<float> slot(scratch_, block.size());
  scratch_ += block.size();
  fetched_.push_back({move.peer, slot.data()});
  Await(move.peer, slot);
}

void ScheduleRun::Send(const Move& move, std::span<float> block) {
  std::span<const std::byte> bytes = std::as_bytes(block);
  if (rounding_.wire != Wire::kFp32) {
    const auto begin = static_cast<size_t>(block.data() - data_.data());
    bytes = std::as_bytes(std::span(staging_).subspan(begin, block.size()));
  }
  sends_.push_back({transport_->Send(move.peer, tag_, bytes), RangeOf(move)});
  bytes_sent_ += static_cast<int64_t>(bytes.size());
  ++messages_;
}

void ScheduleRun::Receive(const Move& move, std::span<float> block) { Await(move.peer, block); }

// Values in 16 bits are received into the second half of the memory (InPlace).
void ScheduleRun::Await(Rank from, std::span<float> memory) {
  std::span<std::byte> bytes = std::as_writable_bytes(memory);
  if (rounding_.wire != Wire::kFp32) bytes = bytes.subspan(bytes.size() / 2);
  arrivals_.push_back({transport_->Receive(from, tag_, bytes), memory});
  bytes_received_ += static_cast<int64_t>(bytes.size());
}

void ScheduleRun::Arrived(std::span<float> memory) {
  if (rounding_.wire == Wire::kFp32) return;
  DecodeInPlace(rounding_.wire, memory.data(), static_cast<int64_t>(memory.size()));
  bytes_added_ += static_cast<int64_t>(memory.size_bytes());
}

// The values that are sent are rounded in this rank's copy too, so that all ranks have the same.
// Rounding a sum leaves errors.
void ScheduleRun::Stage(Range range) {
  EncodeRounding(rounding_.wire, staging_.data() + range.begin, data_.data() + range.begin,
                 rounding_.errors + range.begin, range.size());
  bytes_added_ += range.size() * static_cast<int64_t>(sizeof(float));
  staged_ = range;
}

void ScheduleRun::Sum(std::span<float> block) {
  sources_.clear();
  size_t next = 0;
  while (next < fetched_.size() && fetched_[next].from < transport_->rank()) {
    sources_.push_back(fetched_[next++].values);
  }
  sources_.push_back(block.data());
  while (next < fetched_.size()) sources_.push_back(fetched_[next++].values);
  SumInOrder(block.data(), sources_.data(), static_cast<int>(sources_.size()),
             static_cast<int64_t>(block.size()));
  bytes_added_ += static_cast<int64_t>(block.size_bytes() * fetched_.size());
}

// Requests are tested in the order in which they were posted.  All of them are needed, and each
// Test of an incomplete one costs a poll of the network.
bool ScheduleRun::TestArrivals() {
  while (arrived_ < arrivals_.size()) {
    if (!transport_->Test(arrivals_[arrived_].request)) return false;
    Arrived(arrivals_[arrived_].memory);
    ++arrived_;
    ++events_;
  }
  arrivals_.clear();
  arrived_ = 0;
  return true;
}

bool ScheduleRun::TestSends(Range blocks) {
  for (size_t i = 0; i < sends_.size();) {
    if (!Overlap(blocks, sends_[i].blocks)) {
      ++i;
      continue;
    }
    if (!transport_->Test(sends_[i].request)) return false;
    sends_[i] = sends_.back();
    sends_.pop_back();
    ++events_;
  }
  return true;
}

}  // namespace dtrain
