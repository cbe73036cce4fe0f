#include "framework/sim/sim_collective.h"

#include <algorithm>

#include "framework/comm/local/local_world.h"
#include "framework/comm/sum.h"
#include "framework/core/check.h"

namespace dtrain {

class SimReductions::End : public Collective {
 public:
  End(SimReductions& all, Rank rank) : all_(all), rank_(rank) {}

  std::string name() const override { return "sim"; }
  int64_t Start(std::span<float> data) override { return StartRounded(data, {}); }
  int64_t StartRounded(std::span<float> data, const Rounding& rounding) override {
    const Traffic moved = all_.cost_.TrafficOf(rank_, FloatsOnTheWay(data, rounding));
    traffic_.bytes_sent += moved.bytes_sent;
    traffic_.bytes_received += moved.bytes_received;
    traffic_.messages += moved.messages;
    traffic_.bytes_inside += moved.bytes_inside;
    return all_.Start(rank_, next_++, data, rounding);
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

SimReductions::SimReductions(EventQueue& events, CollectiveCost cost, int ranks, bool overlap,
                             std::function<void(Rank)> wake)
    : events_(events),
      cost_(std::move(cost)),
      ranks_(ranks),
      overlap_(overlap),
      wake_(std::move(wake)) {}

std::unique_ptr<Collective> SimReductions::Connect(Rank rank) {
  return std::make_unique<End>(*this, rank);
}

void SimReductions::AddRounded(const std::string& collective, CollectiveOptions options) {
  options.rounds = true;
  LocalWorld world(ranks_);
  for (Rank rank = 0; rank < ranks_; ++rank) {
    transports_.push_back(world.Connect(rank));
    real_.push_back(MakeCollective(collective, *transports_.back(), options));
  }
}

// Returns the number of floats with as many bytes as the message: two values of 16 bits are as long
// as one float.
int64_t SimReductions::FloatsOnTheWay(std::span<float> data, const Rounding& rounding) {
  const auto n = static_cast<int64_t>(data.size());
  const int64_t bytes = n * BytesOf(rounding.wire);
  return (bytes + 3) / BytesOf(Wire::kFp32);
}

int64_t SimReductions::Start(Rank rank, int64_t ticket, std::span<float> data,
                             const Rounding& rounding) {
  const size_t index = static_cast<size_t>(ticket - done_);
  if (waiting_.size() <= index) waiting_.resize(index + 1);
  Reduction& reduction = waiting_[index];
  reduction.parts.resize(static_cast<size_t>(ranks_));
  reduction.roundings.resize(static_cast<size_t>(ranks_));
  reduction.parts[rank] = data;
  reduction.roundings[rank] = rounding;
  ++reduction.started;
  BeginThoseThatAreThere();
  return ticket;
}

void SimReductions::BeginThoseThatAreThere() {
  while (running_ < waiting_.size() && waiting_[running_].started == ranks_) {
    if (running_ > 0 && !overlap_) return;
    const Reduction& next = waiting_[running_];
    const int64_t n = FloatsOnTheWay(next.parts[0], next.roundings[0]);
    last_end_ = std::max(events_.now() + cost_.Of(n), last_end_ + cost_.Interval(n));
    ++running_;
    events_.At(last_end_, [this] { Finish(); });
  }
}

// Runs the collectives of all ranks in turn until all are done.
void SimReductions::SumRounded(const Reduction& reduction) {
  DT_CHECK(!real_.empty()) << "no sums of 16 bits";
  for (size_t rank = 0; rank < real_.size(); ++rank) {
    real_[rank]->StartRounded(reduction.parts[rank], reduction.roundings[rank]);
  }
  const auto idle = [](const auto& collective) { return collective->Idle(); };
  while (!std::all_of(real_.begin(), real_.end(), idle)) {
    bool moved = false;
    for (const auto& collective : real_) moved |= collective->Progress();
    DT_CHECK(moved) << "a sum that does not end";
  }
}

void SimReductions::Finish() {
  const Reduction& reduction = waiting_[0];
  const std::span<float> first = reduction.parts[0];
  if (first.data() != nullptr && reduction.roundings[0].wire != Wire::kFp32) {
    SumRounded(reduction);
  } else if (first.data() != nullptr) {
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
