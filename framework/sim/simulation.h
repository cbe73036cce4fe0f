// Simulation: a training run in virtual time - the strategy's own actors, drivers and quiescence, over a
// simulated network and simulated compute.  One seed gives one history.
//
//   Simulation simulation(setup);
//   SimulationResult result = simulation.Run();
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/core/layout.h"
#include "framework/core/model_profile.h"
#include "framework/device/blob.h"
#include "framework/exchange/exchange_spec.h"
#include "framework/exchange/quiescence.h"
#include "framework/sim/cluster_config.h"
#include "framework/sim/faults.h"
#include "framework/strategies/report.h"
#include "framework/strategies/strategy.h"

namespace dtrain {

// GradientSource: who computes gradients in a numeric simulation; without one a simulation is a
// ghost, of sizes only.  Nobody reads a gradient before it is announced, so that the steps of
// several virtual workers may be computed side by side.
class GradientSource {
 public:
  virtual ~GradientSource() = default;
  // Begins worker `worker`'s `step`-th mini-batch (counted from 0) at these weights, and returns how
  // many samples it has.  `gradients` is the source's until End.
  virtual int64_t Begin(int worker, int64_t step, const Blob& weights, float* gradients) = 0;
  // Waits for the step that this worker has begun.
  virtual StepReport End(int worker) = 0;
  // It computes no more.
  virtual void Died(int /*worker*/) {}
};

// How far a simulation is, for who looks at it from another thread.
struct SimulationProgress {
  std::atomic<int64_t> steps = 0;         // of all workers
  std::atomic<Nanos> time = 0;            // virtual
  std::atomic<int64_t> last_samples = 0;  // where it ends, unless it ends early: the rule's
};

struct SimulationSetup {
  ExchangeSpec exchange;  // a ghost without a source of gradients
  ClusterConfig cluster;
  ModelProfile profile;
  std::vector<std::vector<double>> trace;  // recorded step seconds by worker; empty: the profile
  Faults faults;
  uint64_t seed = 1;
  // Numeric: who computes.  Null: a ghost.
  GradientSource* source = nullptr;

  // Where it goes on from a simulation that was saved: the hosts' part of Simulation::Save, by rank,
  // beside the actors' in exchange.start.  Null: it begins at `first_time`, each worker with its mini-batch
  // `first_step`.
  const std::map<Rank, StateRecord>* hosts = nullptr;
  int64_t first_step = 0;
  Nanos first_time = 0;

  // Told of every step that a worker has ended; null: nobody looks.
  SimulationProgress* progress = nullptr;

  // At every boundary, the last one too, with the model's weights (null in a ghost run).  True: the run
  // ends here.
  std::function<bool(const BoundaryState&, Nanos, const float* weights)> at_boundary;
};

struct SimulatedWorker {
  int64_t steps = 0;
  int64_t samples = 0;  // of these
  Nanos compute = 0;
  Nanos wait = 0;           // for admission, answers and sums
  Nanos died = -1;          // when it did
  ProtocolReport protocol;  // what it has counted itself
};

struct SimulationResult {
  BoundaryState end;
  Nanos time = 0;  // virtual
  std::vector<SimulatedWorker> workers;
  std::vector<double> step_seconds;  // of worker 0, begin to begin
  Collective::Traffic traffic;       // of all ranks
  ProtocolReport protocol;
  CompressionReport compression;  // of all ranks
  Nanos compress_longest = 0;     // that any rank spent on it
  std::vector<float> weights;     // numeric
  double loss = 0;                // numeric: mean of the last global batch; asynchronous: of all
  int64_t events = 0;
  std::vector<std::string> timelines;  // RankTimeline::Pack of each rank, where asked for
  std::string state_sha256;            // of all actors and vectors: one seed, one history
};

// What a worker would report of its `step`-th mini-batch, where nothing is computed.
StepReport SampleCounts(const ExchangeSpec& spec, int worker, int64_t step);

// The exchange's layers' gradients with the times that a planner would measure in this cluster: of a usual step
// (no jitter, no pauses) of the slowest worker, and T(M) of the collective on this network.
LayerGradients TimedLayerGradients(const SimulationSetup& setup);

class Simulation {
 public:
  // Throws ConfigError where the cluster does not fit the workers.
  explicit Simulation(const SimulationSetup& setup);
  ~Simulation();

  // Throws StalledError, with every actor's state, when nothing is left to happen before the end.
  SimulationResult Run();

  // --- within at_boundary, in a run without deaths
  // What a rank keeps of its own: its actors (ExchangeSpec::Start::ranks), what these hold for others
  // (Actor::Holds), and its host - the worker's steps; of rank 0 also the time and the network's state.
  struct SavedRank {
    StateRecord actors;
    std::string holds;
    StateRecord host;
  };
  SavedRank Save(Rank rank);
  // The solver's vectors by name, and how many steps the weights have had, as ModelAtBoundary has them.
  std::map<std::string, std::vector<float>> SolverState();
  int64_t Updates();
  double Loss() const;  // SimulationResult::loss

 private:
  struct World;
  std::unique_ptr<World> world_;
};

}  // namespace dtrain
