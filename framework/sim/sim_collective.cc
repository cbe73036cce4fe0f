#include "framework/sim/sim_collective.h"

#include <algorithm>

#include "framework/comm/sum.h"
#include "framework/core/check.h"

namespace dtrain {

class SimReductions::End : public Collective {
 public:
  End(SimReductions& all, Rank rank) : all_(all), rank_(rank) {}

  std::string name() const override { return "sim"; }
  int64_t Start(std::span<float> data) override {
    const Traffic moved = all_.price_.TrafficOf(rank_, static_cast<int64_t>(data.size()));
    traffic_.bytes_sent += moved.bytes_sent;
    traffic_.bytes_received += moved.bytes_received;
    traffic_.messages += moved.messages;
    traffic_.bytes_inside += moved.bytes_inside;
    return all_.Start(rank_, next_++, data);
  }
  bool Progress() override { return false; }
  bool Done(int64_t ticket) const override { return ticket < all_.done_; }
  bool Idle() const override { return next_ <= all_.done_; }
  Traffic traffic() const override { return traffic_; }

 private:
  SimReductions& all_;
  const Rank rank_;
  int64_t next_ = 0;  // ticket
  Traffic traffic_;
};

SimReductions::SimReductions(EventQueue& events, CollectivePrice price, int ranks, bool overlap,
                             std::function<void(Rank)> wake)
    : events_(events),
      price_(std::move(price)),
      ranks_(ranks),
      overlap_(overlap),
      wake_(std::move(wake)) {}

std::unique_ptr<Collective> SimReductions::Connect(Rank rank) {
  return std::make_unique<End>(*this, rank);
}

int64_t SimReductions::Start(Rank rank, int64_t ticket, std::span<float> data) {
  const size_t index = static_cast<size_t>(ticket - done_);
  if (waiting_.size() <= index) waiting_.resize(index + 1);
  Reduction& reduction = waiting_[index];
  reduction.parts.resize(static_cast<size_t>(ranks_));
  reduction.parts[rank] = data;
  ++reduction.started;
  BeginThoseThatAreThere();
  return ticket;
}

void SimReductions::BeginThoseThatAreThere() {
  while (running_ < waiting_.size() && waiting_[running_].started == ranks_) {
    if (running_ > 0 && !overlap_) return;
    const auto n = static_cast<int64_t>(waiting_[running_].parts[0].size());
    last_end_ = std::max(events_.now() + price_.Of(n), last_end_ + price_.Interval(n));
    ++running_;
    events_.At(last_end_, [this] { Finish(); });
  }
}

void SimReductions::Finish() {
  const Reduction& reduction = waiting_[0];
  const std::span<float> first = reduction.parts[0];
  if (first.data() != nullptr) {
    std::vector<const float*> terms;
    for (const std::span<float> part : reduction.parts) terms.push_back(part.data());
    SumInOrder(first.data(), terms.data(), ranks_, static_cast<int64_t>(first.size()));
    for (Rank rank = 1; rank < ranks_; ++rank) {
      std::copy(first.begin(), first.end(), reduction.parts[rank].begin());
    }
  }
  waiting_.erase(waiting_.begin());
  ++done_;
  --running_;
  for (Rank rank = 0; rank < ranks_; ++rank) wake_(rank);
  BeginThoseThatAreThere();
}

}  // namespace dtrain
