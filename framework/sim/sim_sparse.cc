#include "framework/sim/sim_sparse.h"

#include <algorithm>
#include <cmath>

#include "framework/comm/local/local_world.h"
#include "framework/core/check.h"
#include "framework/core/layout.h"

namespace dtrain {
namespace {

bool IsGhost(SparseEntries entries) {
  return !entries.empty() && entries.positions.data() == nullptr;
}

SparseEntries GhostEntries(int64_t count) {
  const auto size = static_cast<size_t>(count);
  return {{static_cast<const int32_t*>(nullptr), size}, {static_cast<const float*>(nullptr), size}};
}

int64_t EntriesOf(const std::vector<SparseEntries>& mine) {
  int64_t entries = 0;
  for (const SparseEntries& of_rank : mine) entries += of_rank.size();
  return entries;
}

}  // namespace

class SimSparseSums::End : public SparseCollective {
 public:
  End(SimSparseSums& all, Rank rank) : all_(all), rank_(rank) {}

  std::string name() const override { return all_.cost_.collective(); }
  int64_t Start(int unit, int64_t n, int64_t k, SparseEntries mine) override {
    return all_.Start(rank_, next_++, {.unit = unit, .n = n, .k = k, .mine = {}}, mine);
  }
  bool Progress() override { return false; }
  bool Done(int64_t ticket) const override { return ticket < all_.done_; }
  bool Idle() const override { return next_ <= all_.done_; }
  const Sum& Of(int64_t ticket) const override {
    return ghosts() ? all_.GhostAt(ticket).sum : real().Of(ticket);
  }
  void Release(int64_t ticket) override {
    if (ghosts()) return all_.ReleaseGhost(ticket);
    real().Release(ticket);
  }
  Collective::Traffic traffic() const override {
    if (!ghosts()) return real().traffic();
    const SparseCost::Moved& moved = all_.moved_by_ghosts_;
    return {.bytes_sent = std::llround(moved.bytes_sent),
            .bytes_received = std::llround(moved.bytes_sent),
            .messages = std::llround(moved.messages),
            .bytes_inside = std::llround(moved.bytes_inside)};
  }
  int64_t periodic_bytes_received() const override {
    return ghosts() ? std::llround(all_.moved_by_ghosts_.periodic_bytes)
                    : real().periodic_bytes_received();
  }
  // Each rank also saves `calls`, which all ranks share; the value is the same whichever is loaded
  // last.
  void Visit(StateVisitor& visitor) override {
    DT_CHECK(Idle()) << "sums in flight";
    std::vector<int64_t> calls;
    for (const auto& [unit, count] : all_.calls_) calls.insert(calls.end(), {unit, count});
    visitor.Ints("calls", calls);
    all_.calls_.clear();
    for (size_t i = 0; i + 1 < calls.size(); i += 2) {
      all_.calls_[static_cast<int>(calls[i])] = calls[i + 1];
    }
    if (!ghosts()) real().Visit(visitor);
  }

 private:
  bool ghosts() const { return all_.real_.empty(); }
  SparseCollective& real() const { return *all_.real_[static_cast<size_t>(rank_)]; }

  SimSparseSums& all_;
  const Rank rank_;
  int64_t next_ = 0;  // ticket
};

SimSparseSums::SimSparseSums(EventQueue& events, SparseCost cost, Kind kind,
                             std::function<void(Rank)> wake, const std::vector<int>& node_of)
    : events_(events), cost_(std::move(cost)), ranks_(cost_.ranks()), wake_(std::move(wake)) {
  if (kind == Kind::kGhosts) return;
  LocalWorld world(ranks_);
  for (Rank rank = 0; rank < ranks_; ++rank) {
    transports_.push_back(world.Connect(rank));
    real_.push_back(
        MakeSparseCollective(cost_.collective(), *transports_.back(), {.node_of = node_of}));
  }
}

std::unique_ptr<SparseCollective> SimSparseSums::Connect(Rank rank) {
  return std::make_unique<End>(*this, rank);
}

int64_t SimSparseSums::Start(Rank rank, int64_t ticket, const Waiting& sum, SparseEntries mine) {
  const auto index = static_cast<size_t>(ticket - done_);
  if (waiting_.size() <= index) waiting_.resize(index + 1);
  Waiting& waiting = waiting_[index];
  if (waiting.started == 0) {
    waiting = sum;
    waiting.mine.resize(static_cast<size_t>(ranks_));
  }
  DT_CHECK(waiting.unit == sum.unit && waiting.n == sum.n && waiting.k == sum.k)
      << "rank " << rank << " sums unit " << sum.unit << ", others unit " << waiting.unit;
  DT_CHECK(IsGhost(mine) ? real_.empty() : mine.empty() || !real_.empty())
      << mine.size() << " entries";
  waiting.mine[static_cast<size_t>(rank)] = mine;
  ++waiting.started;
  BeginIfAllAreThere();
  return ticket;
}

void SimSparseSums::BeginIfAllAreThere() {
  if (running_ || waiting_.empty() || waiting_[0].started < ranks_) return;
  running_ = true;
  events_.After(cost_.Of(LoadOf(waiting_[0])), [this] { Finish(); });
}

SparseLoad SimSparseSums::LoadOf(const Waiting& sum) const {
  const auto calls = calls_.find(sum.unit);
  return {.entries = static_cast<double>(EntriesOf(sum.mine)) / ranks_,
          .k = static_cast<double>(sum.k),
          .call = calls == calls_.end() ? 0 : calls->second};
}

void SimSparseSums::Finish() {
  const Waiting sum = std::move(waiting_.front());
  waiting_.pop_front();
  if (real_.empty()) {
    ghosts_.push_back({GhostOf(sum), ranks_});
    CountGhost(LoadOf(sum));
  } else {
    SumNumbers(sum);
  }
  ++calls_[sum.unit];
  ++done_;
  running_ = false;
  for (Rank rank = 0; rank < ranks_; ++rank) wake_(rank);
  BeginIfAllAreThere();
}

// Runs the collectives of all ranks in turn until all are done.
void SimSparseSums::SumNumbers(const Waiting& sum) {
  for (size_t rank = 0; rank < real_.size(); ++rank) {
    real_[rank]->Start(sum.unit, sum.n, sum.k, sum.mine[rank]);
  }
  const auto idle = [](const auto& collective) { return collective->Idle(); };
  while (!std::all_of(real_.begin(), real_.end(), idle)) {
    bool moved = false;
    for (const auto& collective : real_) moved |= collective->Progress();
    DT_CHECK(moved) << "a sum that does not end";
  }
}

SparseCollective::Sum SimSparseSums::GhostOf(const Waiting& sum) const {
  const int64_t entries = EntriesOf(sum.mine);
  if (cost_.collective() == "gather") return {.parts = sum.mine, .returned = {}};
  const int64_t kept = std::min(sum.k, entries);
  SparseCollective::Sum ghost{.parts = {}, .returned = GhostEntries((entries - kept) / ranks_)};
  const int parts = cost_.collective() == "gtopk" ? 1 : ranks_;
  for (int part = 0; part < parts; ++part) {
    ghost.parts.push_back(GhostEntries(SplitEvenly({0, kept}, parts, part).size()));
  }
  return ghost;
}

void SimSparseSums::CountGhost(const SparseLoad& load) {
  const SparseCost::Moved moved = cost_.MovedBy(load);
  moved_by_ghosts_.bytes_sent += moved.bytes_sent;
  moved_by_ghosts_.bytes_inside += moved.bytes_inside;
  moved_by_ghosts_.messages += moved.messages;
  moved_by_ghosts_.periodic_bytes += moved.periodic_bytes;
}

SimSparseSums::Ghost& SimSparseSums::GhostAt(int64_t ticket) {
  const int64_t first = done_ - static_cast<int64_t>(ghosts_.size());
  DT_CHECK(ticket >= first && ticket < done_) << "ticket " << ticket;
  return ghosts_[static_cast<size_t>(ticket - first)];
}

void SimSparseSums::ReleaseGhost(int64_t ticket) {
  --GhostAt(ticket).held;
  while (!ghosts_.empty() && ghosts_.front().held == 0) ghosts_.pop_front();
}

}  // namespace dtrain
