#include "framework/comm/plan_run.h"

#include "framework/comm/sum.h"

namespace dtrain {
namespace {

Range RangeOf(const Move& move) { return {move.piece, move.piece + move.count}; }

bool Overlap(Range a, Range b) { return a.begin < b.end && b.begin < a.end; }

}  // namespace

void PlanRun::Begin(const Plan& plan, Tag tag, std::span<float> data, float* scratch,
                    const Rounding& rounding) {
  plan_ = &plan;
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

bool PlanRun::finished() const {
  return next_ == plan_->moves.size() && arrivals_.empty() && sends_.empty();
}

bool PlanRun::Advance() {
  const int64_t events_before = events_;
  while (next_ < plan_->moves.size() && TryMove(plan_->moves[next_])) {
    ++next_;
    ++events_;
  }
  if (next_ == plan_->moves.size() && TestArrivals()) TestSends({0, plan_->pieces});
  return events_ != events_before;
}

bool PlanRun::TryMove(const Move& move) {
  if (move.round != round_) {
    if (!TestArrivals()) return false;
    round_ = move.round;
    scratch_ = scratch_begin_;
    fetched_.clear();
  }
  const Range range =
      PieceOf(static_cast<int64_t>(data_.size()), plan_->pieces, move.piece, move.count);
  if (range.empty()) return true;
  if (move.kind == MoveKind::kSum && !TestArrivals()) return false;
  const bool sends_rounded = move.kind == MoveKind::kSend && rounding_.wire != Wire::kFp32;
  const bool stages = sends_rounded && !Staged(range);
  if ((move.writes() || stages) && !TestSends(RangeOf(move))) return false;
  if (stages) Stage(range);
  if (move.writes()) staged_ = {};
  const std::span<float> piece = data_.subspan(range.begin, range.size());
  switch (move.kind) {
    case MoveKind::kFetch:
      Fetch(move, piece);
      break;
    case MoveKind::kSend:
      Send(move, piece);
      break;
    case MoveKind::kReceive:
      Receive(move, piece);
      break;
    case MoveKind::kSum:
      Sum(piece);
      break;
  }
  return true;
}

void PlanRun::Fetch(const Move& move, std::span<float> piece) {
  const std::span<float> slot(scratch_, piece.size());
  scratch_ += piece.size();
  fetched_.push_back({move.peer, slot.data()});
  Await(move.peer, slot);
}

void PlanRun::Send(const Move& move, std::span<float> piece) {
  std::span<const std::byte> bytes = std::as_bytes(piece);
  if (rounding_.wire != Wire::kFp32) {
    const auto begin = static_cast<size_t>(piece.data() - data_.data());
    bytes = std::as_bytes(std::span(staging_).subspan(begin, piece.size()));
  }
  sends_.push_back({transport_->Send(move.peer, tag_, bytes), RangeOf(move)});
  bytes_sent_ += static_cast<int64_t>(bytes.size());
  ++messages_;
}

void PlanRun::Receive(const Move& move, std::span<float> piece) { Await(move.peer, piece); }

// In 16 bits it comes into the second half of the memory (InPlace).
void PlanRun::Await(Rank from, std::span<float> memory) {
  std::span<std::byte> bytes = std::as_writable_bytes(memory);
  if (rounding_.wire != Wire::kFp32) bytes = bytes.subspan(bytes.size() / 2);
  arrivals_.push_back({transport_->Receive(from, tag_, bytes), memory});
  bytes_received_ += static_cast<int64_t>(bytes.size());
}

void PlanRun::Arrived(std::span<float> memory) {
  if (rounding_.wire == Wire::kFp32) return;
  DecodeInPlace(rounding_.wire, memory.data(), static_cast<int64_t>(memory.size()));
  bytes_added_ += static_cast<int64_t>(memory.size_bytes());
}

// What travels is rounded here too, so that all have the same; of a sum that leaves something.
void PlanRun::Stage(Range range) {
  EncodeRounding(rounding_.wire, staging_.data() + range.begin, data_.data() + range.begin,
                 rounding_.errors + range.begin, range.size());
  bytes_added_ += range.size() * static_cast<int64_t>(sizeof(float));
  staged_ = range;
}

void PlanRun::Sum(std::span<float> piece) {
  sources_.clear();
  size_t next = 0;
  while (next < fetched_.size() && fetched_[next].from < transport_->rank()) {
    sources_.push_back(fetched_[next++].values);
  }
  sources_.push_back(piece.data());
  while (next < fetched_.size()) sources_.push_back(fetched_[next++].values);
  SumInOrder(piece.data(), sources_.data(), static_cast<int>(sources_.size()),
             static_cast<int64_t>(piece.size()));
  bytes_added_ += static_cast<int64_t>(piece.size_bytes() * fetched_.size());
}

// In the order in which they were posted: all are needed, and each Test of one that is still on its
// way costs a poll of the network.
bool PlanRun::TestArrivals() {
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

bool PlanRun::TestSends(Range pieces) {
  for (size_t i = 0; i < sends_.size();) {
    if (!Overlap(pieces, sends_[i].pieces)) {
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
