#include "framework/sim/simulation.h"

#include <algorithm>
#include <functional>

#include "framework/core/check.h"
#include "framework/core/error.h"
#include "framework/core/sha256.h"
#include "framework/sim/collective_cost.h"
#include "framework/sim/event_queue.h"
#include "framework/sim/network.h"
#include "framework/sim/sim_channel.h"
#include "framework/sim/sim_collective.h"
#include "framework/sim/sim_rank.h"
#include "framework/sim/sim_sparse.h"

namespace dtrain {
namespace {

constexpr int kStatesShown = 40;
constexpr int64_t kTimelineEvents = 1 << 22;  // of all ranks together

// Makes the run a ghost run if there is no source of gradients, and sets the nodes of the ranks
// from the cluster if none are given.
SimulationSetup Completed(SimulationSetup setup) {
  ExchangeSpec& spec = setup.exchange;
  spec.ghost = setup.source == nullptr;
  if (spec.rank_nodes.empty()) {
    spec.rank_nodes = NodesOfRanks(spec.placement(), setup.cluster.network.per_node);
  }
  return setup;
}

CollectiveCost CostOfAllReduce(const SimulationSetup& setup) {
  const ExchangeSpec& spec = setup.exchange;
  return {spec.collective, spec.placement().ranks(), setup.cluster.network,
          1 / setup.cluster.memory_gbyte_s, spec.collective_options()};
}

SparseCost CostOfSparseAllReduce(const SimulationSetup& setup) {
  const ExchangeSpec& spec = setup.exchange;
  return {spec.actors.compress.exchange, spec.placement().ranks(), setup.cluster.network,
          1 / setup.cluster.memory_gbyte_s, spec.rank_nodes};
}

ReduceTime TimeOfSums(const SimulationSetup& setup) {
  return [cost = CostOfAllReduce(setup)](int64_t bytes) {
    return ToSeconds(cost.Of(bytes / static_cast<int64_t>(sizeof(float))));
  };
}

// Returns how long the exchange thread computes for a vector of a number of bytes: the compressor, by its measured cost
// or its passes, and `vectors` vectors written besides.  It takes the values for one unit.
std::function<Nanos(int64_t)> TimeOfCompression(const SimulationSetup& setup, int vectors,
                                                const ComputeModel& compute) {
  const CompressConfig& compress = setup.exchange.actors.compress;
  const CompressCost& cost = setup.exchange.compress_cost;
  if (!cost.known()) vectors += compress.compressor->passes();
  return [cost, density = compress.density, vectors, compute](int64_t bytes) {
    return cost.SelectTime(bytes / static_cast<int64_t>(sizeof(float)), density) +
           compute.VectorTime(vectors * bytes);
  };
}

// Sums in 16 bits: half of the bytes, plus the arithmetic for the residual and the rounding.
ReduceTime TimeOfRoundedSums(const SimulationSetup& setup, const ComputeModel& compute) {
  return
      [cost = CostOfAllReduce(setup), time = TimeOfCompression(setup, 1, compute)](int64_t bytes) {
        const int64_t n = bytes / static_cast<int64_t>(sizeof(float));
        return ToSeconds(cost.Of((n + 1) / 2) + time(bytes));
      };
}

// Sums of selected entries, plus the arithmetic of the exchange thread for residual, selection and
// sum.
ReduceTime TimeOfSelections(const SimulationSetup& setup, const ComputeModel& compute) {
  const CompressConfig& compress = setup.exchange.actors.compress;
  std::function<Nanos(int64_t)> sum = [cost = CostOfSparseAllReduce(setup),
                                       density = compress.density](int64_t n) {
    const auto k = static_cast<double>(n == 0 ? 0 : EntriesAsked(density, n));
    return cost.Of({.entries = k, .k = k});
  };
  if (compress.PaysDense(compress.density, setup.exchange.placement().workers)) {
    sum = [cost = CostOfAllReduce(setup)](int64_t n) { return cost.Of(n); };
  }
  return [sum, time = TimeOfCompression(setup, 2, compute)](int64_t bytes) {
    const int64_t n = bytes / static_cast<int64_t>(sizeof(float));
    return ToSeconds(sum(n) + time(bytes));
  };
}

}  // namespace

LayerGradients TimedLayerGradients(const SimulationSetup& given) {
  const SimulationSetup setup = Completed(given);
  const ExchangeSpec& spec = setup.exchange;
  const int workers = spec.placement().workers;
  std::vector<int64_t> samples;
  for (int worker = 0; worker < workers; ++worker) {
    samples.push_back(SampleCounts(spec, worker, 0).samples);
  }
  LayerGradients layer_gradients = spec.layer_gradients;
  layer_gradients.ready = UsualReady(setup.cluster, setup.profile, samples);
  // Workers that clip their own gradient send nothing before the whole gradient is ready.
  if (spec.actors.compress.clip_norm > 0) {
    std::fill(layer_gradients.ready.begin(), layer_gradients.ready.end(),
              layer_gradients.ready.back());
  }
  const ComputeModel compute(setup.cluster, setup.profile, workers, setup.seed);
  layer_gradients.reduce_seconds =
      workers == 1                     ? ReduceTime([](int64_t) { return 0.0; })
      : spec.actors.compress.rounds()  ? TimeOfRoundedSums(setup, compute)
      : spec.actors.compress.selects() ? TimeOfSelections(setup, compute)
                                       : TimeOfSums(setup);
  return layer_gradients;
}

struct Simulation::World {
  explicit World(const SimulationSetup& given);

  void AddRank(Rank rank, const VectorSlice& initial);
  void Visit(StateVisitor& visitor);
  void RankAtBoundary();
  void ExpectFaults();
  void Kill(const Death& death);
  bool CallAtBoundary();
  [[noreturn]] void ThrowStalled();
  std::vector<float> Weights();
  double Loss() const;
  SimulationResult Result();

  const SimulationSetup setup;
  BlobPools pools;  // declared before `events`, since messages in flight have blobs of it
  EventQueue events;
  const VirtualClock clock{events};
  Network network;
  ComputeModel compute;
  std::unique_ptr<SimReductions> reductions;
  std::unique_ptr<SimSparseSums> selections;
  std::vector<SimChannel*> boxes;
  std::vector<std::unique_ptr<SimRank>> ranks;
  int at_boundary = 0;
  bool ended = false;
};

Simulation::World::World(const SimulationSetup& given)
    : setup(Completed(given)),
      pools(given.source == nullptr ? BlobMemory() : given.source->Memory()),
      network(events, setup.cluster.network, setup.exchange.placement().ranks(),
              setup.exchange.rank_nodes, setup.seed),
      compute(setup.cluster, setup.profile, setup.exchange.placement().workers, setup.seed) {
  if (!setup.trace.empty()) compute.UseTrace(setup.trace);
  if (setup.hosts == nullptr && setup.first_time > 0) events.StartAt(setup.first_time);
  const ExchangeSpec& spec = setup.exchange;
  const int size = spec.placement().ranks();
  const auto wake = [this](Rank rank) { ranks[rank]->Wake(); };
  if (spec.traits().collectives && size > 1) {
    reductions = std::make_unique<SimReductions>(events, CostOfAllReduce(setup), size,
                                                 spec.overlap_buckets, wake);
    if (spec.actors.compress.rounds()) {
      if (!spec.ghost) reductions->AddRounded(spec.collective, spec.collective_options());
    } else if (spec.actors.compress.on()) {
      selections = std::make_unique<SimSparseSums>(
          events, CostOfSparseAllReduce(setup),
          spec.ghost ? SimSparseSums::Kind::kGhosts : SimSparseSums::Kind::kNumbers, wake,
          spec.rank_nodes);
    }
  }
  VectorSlice initial;
  if (!spec.ghost) initial = {pools.CopyOf(spec.start.weights), 0, {0, spec.size()}};
  for (Rank rank = 0; rank < size; ++rank) AddRank(rank, initial);
  if (spec.statistics != nullptr)
    spec.statistics->BeginBehind(ranks[spec.statistics->worker()]->worker().steps);
  for (const Death& death : setup.cluster.deaths) {
    if (death.at_step == Death::kNone) continue;
    ranks[death.worker]->DieBehind(death.at_step, [this, &death] { Kill(death); });
  }
  network.Delay(setup.faults.delays);
  network.SlowDown(setup.faults.slow_links);
  ExpectFaults();
  ended = spec.start.over;
}

// Schedules the faults that have a time which has not passed yet.
void Simulation::World::ExpectFaults() {
  for (const Death& death : setup.cluster.deaths) {
    const Nanos at = FromSeconds(death.at_seconds);
    if (death.at_step != Death::kNone || at < events.now()) continue;
    events.At(at, [this, &death] { Kill(death); });
  }
  for (const Faults::Stop& stop : setup.faults.stops) {
    if (stop.at < events.now()) continue;
    events.At(stop.at, [this, &stop] { ranks[stop.rank]->Stop(stop.lasts); });
  }
}

void Simulation::World::Kill(const Death& death) {
  for (const Rank rank : RanksOf(death, setup.exchange.placement(), setup.cluster.per_node())) {
    ranks[rank]->Die();
  }
}

// When a saved simulation continues, time and network are loaded before the first rank is made, and
// each rank's state after its construction.
void Simulation::World::AddRank(Rank rank, const VectorSlice& initial) {
  static const StateRecord kNothing;
  const ExchangeSpec& spec = setup.exchange;
  StatePlayer saved(setup.hosts == nullptr ? kNothing : setup.hosts->at(rank));
  if (setup.hosts != nullptr && rank == 0) Visit(saved);
  const auto wake = [this](Rank to) { ranks[to]->Wake(); };
  auto channel = std::make_unique<SimChannel>(rank, network, boxes, wake);
  boxes.push_back(channel.get());
  RankDependencies dependencies{.clock = &clock,
                                .pools = spec.ghost ? nullptr : &pools,
                                .channel = std::move(channel),
                                .collective = reductions ? reductions->Connect(rank) : nullptr,
                                .sparse = selections ? selections->Connect(rank) : nullptr,
                                .weights = initial,
                                .timeline_events = kTimelineEvents / spec.placement().ranks()};
  ranks.push_back(std::make_unique<SimRank>(setup, rank, events, compute, std::move(dependencies)));
  ranks.back()->on_boundary = [this] { RankAtBoundary(); };
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

// Each rank calls it at a boundary.  When all ranks have reached it, the run continues or ends.
void Simulation::World::RankAtBoundary() {
  if (++at_boundary < static_cast<int>(ranks.size())) return;
  at_boundary = 0;
  const bool enough = CallAtBoundary();
  const BoundaryState& state = ranks[0]->quiescence().state();
  ended = enough || state.samples_applied >= setup.exchange.rule.last_samples || state.stop ||
          !state.finite;
  if (ended) return;
  // The remaining events are not needed, since all state is in the ranks, as it is in a checkpoint.
  events.Clear();
  for (const auto& rank : ranks) rank->Leave();
  ExpectFaults();
}

bool Simulation::World::CallAtBoundary() {
  if (!setup.at_boundary) return false;
  const std::vector<float> weights = Weights();
  return setup.at_boundary(ranks[0]->quiescence().state(), events.now(),
                           weights.empty() ? nullptr : weights.data());
}

std::vector<float> Simulation::World::Weights() {
  if (setup.exchange.ghost) return {};
  std::vector<float> weights(static_cast<size_t>(setup.exchange.size()));
  for (const auto& rank : ranks) PutMasters(setup.exchange, rank->driver(), weights.data());
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
  result.end = ranks[0]->quiescence().state();
  result.time = events.now();
  result.events = events.executed();
  result.weights = Weights();
  Sha256 hash;
  for (const auto& rank : ranks) {
    Driver& driver = rank->driver();
    if (driver.HasWorker()) {
      result.workers.push_back(rank->worker());
      result.workers.back().protocol = rank->worker_protocol();
    }
    result.traffic.Add(rank->traffic());
    result.protocol.Add(rank->protocol());
    result.compression.Add(rank->compression());
    result.compress_longest =
        std::max(result.compress_longest,
                 compute.VectorTime(rank->compression().bytes) + rank->compression().time);
    hash.Update(HashState(driver));
    if (rank->timeline() == nullptr) continue;
    const Rank id = static_cast<Rank>(result.timelines.size());
    result.timelines.push_back(
        rank->timeline()->Pack({id, setup.exchange.placement().RoleOf(id), 0}));
  }
  result.state_sha256 = hash.HexDigest();
  for (const Nanos time : ranks[0]->step_times()) result.step_seconds.push_back(ToSeconds(time));
  result.loss = Loss();
  return result;
}

// Returns the loss of the last step of a synchronous run, or the mean over an asynchronous run.
double Simulation::World::Loss() const {
  const auto mean = [](double sum, int64_t samples) {
    return sum / static_cast<double>(std::max<int64_t>(samples, 1));
  };
  const StepOutcome& outcome = ranks[0]->driver().outcome();
  const Quiescence::Progress& progress = ranks[0]->quiescence().progress();
  return setup.exchange.traits().lockstep ? mean(outcome.loss_sum, outcome.samples)
                                          : mean(progress.loss_sum, progress.samples);
}

Simulation::Simulation(const SimulationSetup& setup) : world_(std::make_unique<World>(setup)) {}

Simulation::~Simulation() = default;

Simulation::SavedRank Simulation::Save(Rank rank) {
  DT_CHECK(world_->setup.cluster.deaths.empty()) << "who has died is not saved";
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
        PutPart(spec, master, master.solver_state[i], false, state[names[i]].data());
      }
    }
  }
  return state;
}

int64_t Simulation::Updates() {
  int64_t updates = 0;
  for (const auto& rank : world_->ranks) {
    for (const Driver::Master& master : rank->driver().Masters()) {
      if (master.share > 0) updates = std::max(updates, master.updates);
    }
  }
  return updates;
}

double Simulation::Loss() const { return world_->Loss(); }

SimulationResult Simulation::Run() {
  while (!world_->ended) {
    if (!world_->events.RunNext()) world_->ThrowStalled();
  }
  return world_->Result();
}

}  // namespace dtrain
