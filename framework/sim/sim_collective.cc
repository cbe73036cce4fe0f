#include "framework/sim/sim_collective.h"

#include <algorithm>
#include <cmath>

#include "framework/comm/sum.h"
#include "framework/core/check.h"

namespace dtrain {

class SimReductions::End : public Collective {
 public:
  End(SimReductions& all, Rank rank, double inside) : all_(all), rank_(rank), inside_(inside) {}

  std::string name() const override { return "sim"; }
  int64_t Start(std::span<float> data) override {
    const int64_t bytes = static_cast<int64_t>(data.size() * sizeof(float));
    // What a ring sends.
    const int64_t moved = 2 * (all_.ranks_ - 1) * bytes / all_.ranks_;
    traffic_.bytes_sent += moved;
    traffic_.bytes_received += moved;
    traffic_.messages += 2 * (all_.ranks_ - 1);
    traffic_.bytes_inside += std::llround(inside_ * static_cast<double>(bytes));
    return all_.Start(rank_, next_++, data);
  }
  bool Progress() override { return false; }
  bool Done(int64_t ticket) const override { return ticket < all_.done_; }
  bool Idle() const override { return next_ <= all_.done_; }
  Traffic traffic() const override { return traffic_; }

 private:
  SimReductions& all_;
  const Rank rank_;
  const double inside_;
  int64_t next_ = 0;  // ticket
  Traffic traffic_;
};

SimReductions::SimReductions(EventQueue& events, PlanPrice price, int ranks,
                             std::function<void(Rank)> wake)
    : events_(events), price_(std::move(price)), ranks_(ranks), wake_(std::move(wake)) {}

std::unique_ptr<Collective> SimReductions::Connect(Rank rank, double inside) {
  return std::make_unique<End>(*this, rank, inside);
}

int64_t SimReductions::Start(Rank rank, int64_t ticket, std::span<float> data) {
  const size_t index = static_cast<size_t>(ticket - done_);
  if (waiting_.size() <= index) waiting_.resize(index + 1);
  Reduction& reduction = waiting_[index];
  reduction.parts.resize(static_cast<size_t>(ranks_));
  reduction.parts[rank] = data;
  ++reduction.started;
  BeginIfAllAreThere();
  return ticket;
}

void SimReductions::BeginIfAllAreThere() {
  if (running_ || waiting_.empty() || waiting_[0].started < ranks_) return;
  running_ = true;
  events_.After(price_.Of(static_cast<int64_t>(waiting_[0].parts[0].size())), [this] { Finish(); });
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
  running_ = false;
  for (Rank rank = 0; rank < ranks_; ++rank) wake_(rank);
  BeginIfAllAreThere();
}

}  // namespace dtrain
