// Simulation: a training run in virtual time.  It uses the real actors, drivers and quiescence,
// over a simulated network and simulated compute.  One seed gives one history.
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

#include "framework/cluster/cluster_config.h"
#include "framework/core/layout.h"
#include "framework/core/model_profile.h"
#include "framework/device/blob.h"
#include "framework/exchange/exchange_spec.h"
#include "framework/exchange/quiescence.h"
#include "framework/sim/faults.h"
#include "framework/strategies/report.h"
#include "framework/strategies/strategy.h"

namespace dtrain {

// GradientSource: computes the gradients of a numeric simulation.  Without one, a simulation is a
// ghost run, with sizes only.  A gradient is not read before its virtual time has come, so the steps
// of several virtual workers may be computed in parallel.
class GradientSource {
 public:
  virtual ~GradientSource() = default;
  // Begins worker `worker`'s `step`-th mini-batch (from 0) with these weights, and returns its
  // number of samples.  `gradients` belongs to the source until End.
  virtual int64_t Begin(int worker, int64_t step, const Blob& weights, float* gradients) = 0;
  // Waits for the end of the step that this worker has begun.
  virtual StepReport End(int worker) = 0;
  // The worker has died and computes no more steps.
  virtual void Died(int /*worker*/) {}
  // Returns the memory for the simulation's vectors: pinned, if a device copies weights and gradients in every step.
  virtual BlobMemory Memory() const { return {}; }
};

// Progress of a simulation, for readers on other threads.
struct SimulationProgress {
  std::atomic<int64_t> steps = 0;         // of all workers
  std::atomic<Nanos> time = 0;            // virtual
  std::atomic<int64_t> last_samples = 0;  // BoundarySchedule::last_samples, the latest end
};

struct SimulationSetup {
  ExchangeSpec exchange;  // `ghost` is set by the simulation, true without a source
  ClusterConfig cluster;
  ModelProfile profile;
  std::vector<std::vector<double>> trace;  // recorded step seconds by worker; empty: the profile
  Faults faults;
  uint64_t seed = 1;
  // Computes the gradients of a numeric simulation.  Null: a ghost run.
  GradientSource* source = nullptr;

  // State of a saved simulation to continue from: SavedRank::host of Simulation::Save, by rank; the
  // state of the actors is in exchange.start.  Null: the simulation begins at `first_time`, each
  // worker with its mini-batch `first_step`.
  const std::map<Rank, StateRecord>* hosts = nullptr;
  int64_t first_step = 0;
  Nanos first_time = 0;

  // Updated at the end of every worker's step; may be null.
  SimulationProgress* progress = nullptr;

  // It is called at every boundary, the last one included, with the model's weights (null in a ghost run).  The run
  // ends if it returns true.
  std::function<bool(const BoundaryState&, Nanos, const float* weights)> at_boundary;
};

struct SimulatedWorker {
  int64_t steps = 0;
  int64_t samples = 0;  // of these steps
  Nanos compute = 0;
  Nanos wait = 0;           // for admission, answers and all-reduces
  Nanos died = -1;          // time of its death; -1: it lives
  ProtocolReport protocol;  // counts of the worker itself
};

struct SimulationResult {
  BoundaryState end;
  Nanos time = 0;  // virtual
  std::vector<SimulatedWorker> workers;
  std::vector<double> step_seconds;  // of worker 0, from the begin of a step to its end
  Collective::Traffic traffic;       // of all ranks
  ProtocolReport protocol;
  CompressionReport compression;  // of all ranks
  Nanos compress_longest = 0;     // largest compression time of a rank
  std::vector<float> weights;     // empty in a ghost run
  double loss = 0;  // numeric: mean over the last global batch or, if asynchronous, over the run
  int64_t events = 0;
  std::vector<std::string> timelines;  // RankTimeline::Pack of each rank, if requested
  std::string state_sha256;            // hash of all actors and vectors, to compare histories
};

// Returns the sample counts that a worker would report for its `step`-th mini-batch, without
// computing it.
StepReport SampleCounts(const ExchangeSpec& spec, int worker, int64_t step);

// Returns the exchange's layers' gradients with the times that a planner would measure in this
// cluster: those of a usual step (no jitter, no pauses) of the slowest worker, and T(M) of the
// collective on this network.
LayerGradients TimedLayerGradients(const SimulationSetup& setup);

class Simulation {
 public:
  // Throws ConfigError if the cluster does not fit the workers.
  explicit Simulation(const SimulationSetup& setup);
  ~Simulation();

  // Throws StalledError, with the actors' states, if no event is left before the end of the run.
  SimulationResult Run();

  // --- only within at_boundary, in a run without deaths
  // Holds the saved state of a rank: its actors (ExchangeSpec::Start::ranks), a description of what they hold for
  // others (Actor::Holds), and its host, which has the worker's counts and, on rank 0, the time and the network's
  // state.
  struct SavedRank {
    StateRecord actors;
    std::string holds;
    StateRecord host;
  };
  SavedRank Save(Rank rank);
  // Return the solver's vectors by name, and the number of solver steps, as in ModelAtBoundary.
  std::map<std::string, std::vector<float>> SolverState();
  int64_t Updates();
  double Loss() const;  // SimulationResult::loss

 private:
  struct World;
  std::unique_ptr<World> world_;
};

}  // namespace dtrain
