#include "framework/comm/scheduled_collective.h"

#include <algorithm>

#include "framework/core/check.h"

namespace dtrain {
namespace {

constexpr int64_t kCutBytes = 64;

// Returns the bytes of scratch memory for chunks of this size.  `chunk_bytes` are bytes in
// messages, where an element has the size of `wire`.
int64_t ScratchBytes(const CollectiveSchedule& schedule, int64_t chunk_bytes, Wire wire) {
  const int64_t floats = (chunk_bytes + BytesOf(wire) - 1) / BytesOf(wire);
  return schedule.fetches_max() * BlockOf(floats, schedule.blocks, 0).size() *
         static_cast<int64_t>(sizeof(float));
}

}  // namespace

ScheduledCollective::ScheduledCollective(std::string name, const CollectiveRules& rules,
                                         const CollectiveOptions& options, Transport& transport)
    : name_(std::move(name)), rules_(rules), options_(options), transport_(&transport) {
  if (options.chunk_bytes > 0) {
    rules_.chunk_bytes = options.chunk_bytes;
    rules_.whole_bytes = 0;
  }
  // Chunks are multiples of BlockOf's 16 floats, so that none exceeds its scratch memory.
  rules_.chunk_bytes = (rules_.chunk_bytes + kCutBytes - 1) / kCutBytes * kCutBytes;
  const NodeMap nodes = options_.plan_nodes.empty() ? options_.node_of : options_.plan_nodes;
  schedule_ = rules.scheduler(transport.size(), transport.rank(), nodes);
  const Wire wire = options_.rounds ? Wire::kBf16 : Wire::kFp32;
  int64_t scratch = ScratchBytes(schedule_, std::max(rules_.chunk_bytes, rules_.whole_bytes), wire);
  if (rules.small_scheduler != nullptr) {
    small_schedule_ = rules.small_scheduler(transport.size(), transport.rank(), nodes);
    scratch = std::max(scratch, ScratchBytes(small_schedule_, rules.small_bytes, wire));
  }
  for (int lane = 0; lane < rules.lanes; ++lane) {
    lanes_.push_back({ScheduleRun(transport), Buffer(static_cast<size_t>(scratch)), -1});
    free_.push_back(lane);
  }
  busy_.reserve(lanes_.size());
}

ScheduledCollective::~ScheduledCollective() {
  if (!Idle()) transport_->Withdraw();
}

int64_t ScheduledCollective::StartSum(std::span<float> data, const Rounding& rounding) {
  DT_CHECK(rounding.wire == Wire::kFp32 || options_.rounds) << "made for sums of floats only";
  ForgetFinished();
  Reduction reduction{.data = data, .rounding = rounding, .schedule = &schedule_};
  const int64_t bytes = static_cast<int64_t>(data.size()) * BytesOf(rounding.wire);
  const bool small = rules_.small_scheduler != nullptr && bytes <= rules_.small_bytes;
  if (small) reduction.schedule = &small_schedule_;
  if (!data.empty() && transport_->size() > 1) {
    const bool whole = small || bytes <= rules_.whole_bytes;
    reduction.chunks =
        whole ? 1 : static_cast<int>((bytes + rules_.chunk_bytes - 1) / rules_.chunk_bytes);
  }
  reduction.chunks_left = reduction.chunks;
  reductions_.push_back(reduction);
  BeginChunks();
  return first_ticket_ + static_cast<int64_t>(reductions_.size()) - 1;
}

void ScheduledCollective::ForgetFinished() {
  const auto unfinished = std::find_if(reductions_.begin(), reductions_.end(),
                                       [](const Reduction& r) { return r.chunks_left > 0; });
  first_ticket_ += unfinished - reductions_.begin();
  reductions_.erase(reductions_.begin(), unfinished);
  begin_ticket_ = std::max(begin_ticket_, first_ticket_);
}

bool ScheduledCollective::BeginChunks() {
  bool begun = false;
  const int64_t end = first_ticket_ + static_cast<int64_t>(reductions_.size());
  while (begin_ticket_ < end && !free_.empty()) {
    if (At(begin_ticket_).chunks_begun == At(begin_ticket_).chunks) {
      ++begin_ticket_;
      continue;
    }
    if (!MayBegin(begin_ticket_)) break;
    BeginChunk(begin_ticket_);
    begun = true;
  }
  return begun;
}

bool ScheduledCollective::MayBegin(int64_t ticket) const {
  return options_.overlap || busy_.empty() || lanes_[busy_.front()].ticket == ticket;
}

void ScheduledCollective::BeginChunk(int64_t ticket) {
  Reduction& reduction = At(ticket);
  const Range range = BlockOf(static_cast<int64_t>(reduction.data.size()), reduction.chunks,
                              reduction.chunks_begun++);
  const int index = free_.back();
  free_.pop_back();
  busy_.push_back(index);
  Lane& lane = lanes_[index];
  lane.ticket = ticket;
  Rounding rounding = reduction.rounding;
  if (rounding.wire != Wire::kFp32) rounding.errors += range.begin;
  lane.run.Begin(*reduction.schedule, CollectiveTag(sequence_++),
                 reduction.data.subspan(range.begin, range.size()), lane.scratch.f32(), rounding);
  lane.run.Advance();
  if (options_.node_of.empty()) return;
  bytes_inside_ +=
      BytesInside(*reduction.schedule, transport_->rank(), options_.node_of, range.size()) *
      BytesOf(rounding.wire) / BytesOf(Wire::kFp32);
}

bool ScheduledCollective::Progress() {
  const bool moved = AdvanceLanes();
  return BeginChunks() || moved;
}

bool ScheduledCollective::AdvanceLanes() {
  bool moved = false;
  int64_t added = 0;
  for (size_t i = 0; i < busy_.size() && added < kArithmeticPerProgress;) {
    Lane& lane = lanes_[busy_[i]];
    const int64_t added_before = lane.run.bytes_added();
    moved |= lane.run.Advance();
    added += lane.run.bytes_added() - added_before;
    if (!lane.run.finished()) {
      ++i;
      continue;
    }
    --At(lane.ticket).chunks_left;
    free_.push_back(busy_[i]);
    busy_.erase(busy_.begin() + static_cast<std::ptrdiff_t>(i));
    moved = true;
  }
  return moved;
}

bool ScheduledCollective::Done(int64_t ticket) const {
  const int64_t index = ticket - first_ticket_;
  DT_CHECK(index < static_cast<int64_t>(reductions_.size())) << "ticket " << ticket;
  return index < 0 || reductions_[index].chunks_left == 0;
}

bool ScheduledCollective::Idle() const {
  return std::all_of(reductions_.begin(), reductions_.end(),
                     [](const Reduction& r) { return r.chunks_left == 0; });
}

Collective::Traffic ScheduledCollective::traffic() const {
  Traffic total{.bytes_inside = bytes_inside_};
  for (const Lane& lane : lanes_) {
    total.bytes_sent += lane.run.bytes_sent();
    total.bytes_received += lane.run.bytes_received();
    total.messages += lane.run.messages();
  }
  return total;
}

}  // namespace dtrain
