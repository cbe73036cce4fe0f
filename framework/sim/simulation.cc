#include "framework/sim/simulation.h"

#include <algorithm>

#include "framework/comm/collective.h"
#include "framework/core/error.h"
#include "framework/core/sha256.h"
#include "framework/sim/event_queue.h"
#include "framework/sim/network.h"
#include "framework/sim/sim_collective.h"
#include "framework/sim/sim_mail.h"
#include "framework/sim/sim_rank.h"

namespace dtrain {
namespace {

constexpr int kStatesShown = 40;
constexpr int64_t kTimelineEvents = 1 << 22;  // of all ranks

Planner PlannerOf(const std::string& collective) {
  const Planner planner = CollectiveRegistry::Get("collective", collective).planner;
  if (planner != nullptr) return planner;
  throw ConfigError("collective '" + collective + "' cannot be simulated",
                    "its plan is not known; take ordered or ring");
}

// Without a source of gradients a ghost; with the nodes of the cluster where none are given.
SimulationSetup Completed(SimulationSetup setup) {
  ExchangeSpec& spec = setup.exchange;
  spec.ghost = setup.source == nullptr;
  if (spec.rank_nodes.empty()) {
    spec.rank_nodes = NodesOfRanks(spec.placement(), setup.cluster.network.per_node);
  }
  return setup;
}

}  // namespace

struct Simulation::World {
  explicit World(const SimulationSetup& given);

  double InsideOf(Rank rank) const;
  void AddRank(Rank rank, const Piece& initial);
  void Visit(StateVisitor& visitor);
  void RankRests();
  bool CallAtRest();
  [[noreturn]] void ThrowStalled();
  std::vector<float> Weights();
  SimulationResult Result();

  const SimulationSetup setup;
  BlobPools pools;  // letters on their way hold blobs of it
  EventQueue events;
  const VirtualClock clock{events};
  Network network;
  ComputeModel compute;
  std::unique_ptr<SimReductions> reductions;
  std::vector<SimMail*> boxes;
  std::vector<std::unique_ptr<SimRank>> ranks;
  int resting = 0;
  bool ended = false;
};

Simulation::World::World(const SimulationSetup& given)
    : setup(Completed(given)),
      network(events, setup.cluster.network, setup.exchange.placement().ranks(),
              setup.exchange.rank_nodes, setup.seed),
      compute(setup.cluster, setup.profile, setup.exchange.placement().workers, setup.seed) {
  if (!setup.trace.empty()) compute.UseTrace(setup.trace);
  const ExchangeSpec& spec = setup.exchange;
  const int size = spec.placement().ranks();
  const auto wake = [this](Rank rank) { ranks[rank]->Wake(); };
  if (spec.placement().servers == 0 && size > 1) {
    const double add_ns_per_byte = 1 / setup.cluster.memory_gbyte_s;
    const Planner planner = PlannerOf(spec.collective);
    reductions = std::make_unique<SimReductions>(
        events, PlanPrice(planner, size, setup.cluster.network, add_ns_per_byte, spec.rank_nodes),
        size, wake);
  }
  Piece initial;
  if (!spec.ghost) initial = {pools.CopyOf(spec.start.weights), 0, {0, spec.size()}};
  for (Rank rank = 0; rank < size; ++rank) AddRank(rank, initial);
}

// The part of a sum's vector that a rank sends within its node, by the plan.
double Simulation::World::InsideOf(Rank rank) const {
  constexpr int64_t kFloats = 1 << 24;
  const ExchangeSpec& spec = setup.exchange;
  if (setup.cluster.network.per_node == 1) return 0;
  const Plan plan = PlannerOf(spec.collective)(spec.placement().ranks(), rank);
  return static_cast<double>(BytesInside(plan, rank, spec.rank_nodes, kFloats)) /
         static_cast<double>(kFloats * static_cast<int64_t>(sizeof(float)));
}

// Where it goes on: the time before the rank is made, the rank's own when its step has begun.
void Simulation::World::AddRank(Rank rank, const Piece& initial) {
  static const StateRecord kNothing;
  const ExchangeSpec& spec = setup.exchange;
  StatePlayer saved(setup.hosts == nullptr ? kNothing : setup.hosts->at(rank));
  if (setup.hosts != nullptr && rank == 0) Visit(saved);
  const auto wake = [this](Rank to) { ranks[to]->Wake(); };
  auto mail = std::make_unique<SimMail>(rank, network, boxes, wake);
  boxes.push_back(mail.get());
  RankSeams seams{.clock = &clock,
                  .pools = spec.ghost ? nullptr : &pools,
                  .mail = std::move(mail),
                  .collective = reductions ? reductions->Connect(rank, InsideOf(rank)) : nullptr,
                  .weights = initial,
                  .timeline_events = kTimelineEvents / spec.placement().ranks()};
  ranks.push_back(std::make_unique<SimRank>(setup, rank, events, compute, std::move(seams)));
  ranks.back()->on_rest = [this] { RankRests(); };
  if (setup.hosts == nullptr) return;
  ranks.back()->Visit(saved);
  saved.Finish();
}

void Simulation::World::Visit(StateVisitor& visitor) {
  Nanos time = events.now();
  visitor.Int("time", time);
  if (time != events.now()) events.StartAt(time);
  network.Visit(visitor);
}

// When all have come to rest the run goes on, or is over.
void Simulation::World::RankRests() {
  if (++resting < static_cast<int>(ranks.size())) return;
  resting = 0;
  const bool enough = CallAtRest();
  const RestState& state = ranks[0]->rest().state();
  ended = enough || state.samples_applied >= setup.exchange.rule.last_samples || state.stop ||
          !state.finite;
  if (ended) return;
  // Looks that nobody needs any more: what is left is what a checkpoint has.
  events.Clear();
  for (const auto& rank : ranks) rank->Leave();
}

bool Simulation::World::CallAtRest() {
  if (!setup.at_rest) return false;
  const std::vector<float> weights = Weights();
  return setup.at_rest(ranks[0]->rest().state(), events.now(),
                       weights.empty() ? nullptr : weights.data());
}

std::vector<float> Simulation::World::Weights() {
  if (setup.exchange.ghost) return {};
  std::vector<float> weights(static_cast<size_t>(setup.exchange.size()));
  for (const auto& rank : ranks) rank->driver().PutMasters(weights.data());
  return weights;
}

void Simulation::World::ThrowStalled() {
  std::string states;
  for (size_t rank = 0; rank < ranks.size() && rank < kStatesShown; ++rank) {
    states += "\n  rank " + std::to_string(rank) + ": " + ranks[rank]->driver().Describe();
  }
  if (ranks.size() > kStatesShown) {
    states += "\n  and " + std::to_string(ranks.size() - kStatesShown) + " more";
  }
  throw StalledError("nothing is left to happen at " + std::to_string(ToSeconds(events.now())) +
                         " s, and the run is not over" + states,
                     "the protocol waits for itself: this is a bug of the strategy");
}

SimulationResult Simulation::World::Result() {
  SimulationResult result;
  result.end = ranks[0]->rest().state();
  result.time = events.now();
  result.events = events.executed();
  result.weights = Weights();
  Sha256 hash;
  for (const auto& rank : ranks) {
    Driver& driver = rank->driver();
    if (driver.HasWorker()) {
      result.workers.push_back(rank->worker());
      driver.actor(driver.worker()).Report(result.workers.back().protocol);
    }
    const Collective::Traffic traffic = rank->traffic();
    result.traffic.bytes_sent += traffic.bytes_sent;
    result.traffic.bytes_received += traffic.bytes_received;
    result.traffic.messages += traffic.messages;
    result.traffic.bytes_inside += traffic.bytes_inside;
    result.protocol.Add(driver.Report());
    result.compression.Add(rank->compression());
    result.compress_longest =
        std::max(result.compress_longest, compute.VectorTime(rank->compression().bytes));
    hash.Update(HashState(driver));
    if (rank->timeline() == nullptr) continue;
    const Rank id = static_cast<Rank>(result.timelines.size());
    result.timelines.push_back(
        rank->timeline()->Pack({id, setup.exchange.placement().RoleOf(id), 0}));
  }
  result.state_sha256 = hash.HexDigest();
  result.step_seconds = ranks[0]->step_seconds();
  const Rest::Told& told = ranks[0]->rest().told();
  const StepOutcome& outcome = ranks[0]->driver().outcome();
  const bool all = setup.exchange.synchronous();
  // Asynchronous: the mean over the run.
  result.loss = all ? outcome.loss_sum / static_cast<double>(std::max<int64_t>(outcome.samples, 1))
                    : told.loss_sum / static_cast<double>(std::max<int64_t>(told.samples, 1));
  return result;
}

Simulation::Simulation(const SimulationSetup& setup) : world_(std::make_unique<World>(setup)) {}

Simulation::~Simulation() = default;

Simulation::SavedRank Simulation::Save(Rank rank) {
  SimRank& of = *world_->ranks[rank];
  SavedRank saved{of.SaveActors(), of.driver().Holds(), {}};
  saved.host = RecordState([&](StateVisitor& visitor) {
    if (rank == 0) world_->Visit(visitor);
    of.Visit(visitor);
  });
  return saved;
}

std::map<std::string, std::vector<float>> Simulation::SolverState() {
  const ExchangeSpec& spec = world_->setup.exchange;
  const std::vector<std::string> names = spec.solver.solver->StateNames();
  std::map<std::string, std::vector<float>> state;
  for (const std::string& name : names) state[name].resize(static_cast<size_t>(spec.size()));
  for (const auto& rank : world_->ranks) {
    for (const Driver::Master& master : rank->driver().Masters()) {
      for (size_t i = 0; i < names.size(); ++i) {
        float* const to = state[names[i]].data();
        if (spec.placement().replicated) {
          AddReplica(to, master.solver_state[i], master.share, master.range.size());
        } else {
          std::copy_n(master.solver_state[i], master.range.size(), to + master.range.begin);
        }
      }
    }
  }
  return state;
}

int64_t Simulation::Updates() {
  int64_t updates = 0;
  for (const auto& rank : world_->ranks) {
    for (const Driver::Master& master : rank->driver().Masters()) {
      updates = std::max(updates, master.updates);
    }
  }
  return updates;
}

SimulationResult Simulation::Run() {
  while (!world_->ended) {
    if (!world_->events.RunNext()) world_->ThrowStalled();
  }
  return world_->Result();
}

}  // namespace dtrain
