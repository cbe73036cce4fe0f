#include "framework/sim/nic.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace dtrain {

Nic::Nic(EventQueue& events, const LinkModel& link, Listener listener)
    : events_(events), rate_(link), listener_(std::move(listener)) {}

void Nic::Add(Flow flow, MessageId id, int64_t bytes, double weight) {
  AdvanceTo(static_cast<double>(events_.now()));
  const Place place = Store({flow, id, kNone, static_cast<double>(bytes), weight});
  const auto [tail, is_first] = tails_.try_emplace(flow, place);
  if (is_first) {
    Begin(place);
  } else {
    queued_[tail->second].next = place;
    tail->second = place;
  }
  Arm();
}

Nanos Nic::busy() const {
  const double open = fronts_.empty() ? 0 : static_cast<double>(events_.now()) - last_;
  return std::llround(busy_ + open);
}

void Nic::Visit(StateVisitor& visitor) {
  DT_CHECK(fronts_.empty() && passed_.empty());
  rate_.Visit(visitor);
  VisitDouble(visitor, "last", last_);
  VisitDouble(visitor, "busy", busy_);
  VisitDouble(visitor, "served", served_);
  timer_ = -1;
}

// Finishes the messages that end until `now`, one after the other, since each end changes the
// shares of the others.
void Nic::AdvanceTo(double now) {
  while (!fronts_.empty()) {
    const double end = NextEnd();
    if (end > now + kRoundingNs) break;
    FinishFront(end);
  }
  AdvanceWithin(now);
}

// Advances to a time at which no message ends before.
void Nic::AdvanceWithin(double now) {
  const double ns = now - last_;
  if (ns <= 0) return;
  double bytes = 0;
  if (!fronts_.empty()) {
    bytes = rate_.BytesIn(ns);
    served_ += bytes / weights_;
    busy_ += ns;
  }
  rate_.Pass(bytes, ns);
  last_ = now;
}

void Nic::FinishFront(double when) {
  const Front front = fronts_.top();
  const double bytes = (front.end - served_) * weights_;
  rate_.Pass(bytes, when - last_);
  busy_ += when - last_;
  last_ = when;
  served_ = front.end;
  fronts_.pop();
  const Queued done = queued_[front.place];
  weights_ = fronts_.empty() ? 0 : weights_ - done.weight;  // 0 drops accumulated rounding errors
  free_.push_back(front.place);
  passed_.push_back(done.id);
  if (done.next != kNone) {
    Begin(done.next);
  } else {
    tails_.erase(done.flow);
  }
}

void Nic::Begin(Place place) {
  const Queued& message = queued_[place];
  fronts_.push({served_ + message.bytes / message.weight, begun_++, place});
  weights_ += message.weight;
  listener_.begun(queued_[place].id);
}

Nic::Place Nic::Store(const Queued& queued) {
  if (free_.empty()) {
    queued_.push_back(queued);
    return static_cast<Place>(queued_.size()) - 1;
  }
  const Place place = free_.back();
  free_.pop_back();
  queued_[place] = queued;
  return place;
}

double Nic::NextEnd() const {
  const double bytes = (fronts_.top().end - served_) * weights_;
  return last_ + std::max(0.0, rate_.TimeFor(std::max(0.0, bytes)));
}

// A new message usually makes the next end later.  Then the pending timer finds nothing and is set
// again.
void Nic::Arm() {
  if (fronts_.empty()) return;
  const Nanos due = std::max(WholeNanos(NextEnd()), events_.now());
  if (timer_ >= 0 && timer_ <= due) return;
  timer_ = due;
  events_.At(due, [this] { OnTimer(); });
}

void Nic::OnTimer() {
  if (timer_ != events_.now()) return;  // an earlier timer has replaced this one
  timer_ = -1;
  AdvanceTo(static_cast<double>(events_.now()));
  reporting_.swap(passed_);
  Arm();
  for (const MessageId id : reporting_) listener_.passed(id);
  reporting_.clear();
}

}  // namespace dtrain
