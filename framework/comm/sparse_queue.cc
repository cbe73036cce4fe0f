#include "framework/comm/sparse_queue.h"

#include <limits>

#include "framework/core/check.h"

namespace dtrain {

SparseQueue::SparseQueue(std::string name, Transport& transport, const CollectiveOptions& options)
    : name_(std::move(name)), link_{.transport = transport, .node_of = options.node_of} {}

SparseQueue::~SparseQueue() { GiveUp(); }

void SparseQueue::GiveUp() {
  if (Idle()) return;
  link_.transport.Withdraw();
  front_ = next_ticket();  // makes Idle true, so that a second call does nothing
}

void SparseQueue::Do(std::function<void()> step) {
  steps_.push_back([this, step = std::move(step)] {
    step();
    link_.events += 1;
    return true;
  });
}

int64_t SparseQueue::Start(int unit, int64_t n, int64_t k, SparseEntries mine) {
  DT_CHECK(unit >= 0 && k >= 0) << "unit " << unit << ", k " << k;
  DT_CHECK(n <= std::numeric_limits<int32_t>::max()) << n << " floats";
  DT_CHECK(mine.values.size() == mine.positions.size() && mine.size() <= n)
      << mine.positions.size() << " positions, " << mine.values.size() << " values of " << n;
  DT_CHECK(mine.empty() || mine.positions.data() != nullptr) << "a ghost";
  if (spares_.empty()) spares_.push_back(std::make_unique<Call>());
  std::unique_ptr<Call> call = std::move(spares_.back());
  spares_.pop_back();
  call->unit = unit;
  call->n = n;
  call->k = k;
  call->mine = mine;
  call->global.Clear();
  call->returned.Clear();
  call->sum.parts.clear();
  calls_.push_back(std::move(call));
  return next_ticket() - 1;
}

bool SparseQueue::Progress() {
  const int64_t events_before = link_.events;
  link_.budget = kArithmeticPerProgress;
  while (!Idle() && steps_[step_]()) {
    if (++step_ < steps_.size()) continue;
    call().sum.returned = call().returned.entries();
    step_ = 0;
    ++front_;
  }
  return link_.events != events_before || link_.budget != kArithmeticPerProgress;
}

bool SparseQueue::Done(int64_t ticket) const {
  DT_CHECK(ticket < next_ticket()) << "ticket " << ticket;
  return ticket < front_;
}

const SparseCollective::Sum& SparseQueue::Of(int64_t ticket) const {
  DT_CHECK(Done(ticket) && ticket >= first_ticket_) << "ticket " << ticket;
  const Call* const call = calls_[static_cast<size_t>(ticket - first_ticket_)].get();
  DT_CHECK(call != nullptr) << "ticket " << ticket << " is released";
  return call->sum;
}

void SparseQueue::Release(int64_t ticket) {
  Of(ticket);
  spares_.push_back(std::move(calls_[static_cast<size_t>(ticket - first_ticket_)]));
  while (!calls_.empty() && calls_.front() == nullptr) {
    calls_.pop_front();
    ++first_ticket_;
  }
}

}  // namespace dtrain
