// ExchangeSpec: describes the exchange of one run, made once from config, model and execution plan.
// All hosts use it: InlineExchange, ThreadedExchange, the simulator and the replay of a record.
//
// It does not change during the run.  No part of the exchange keeps a copy of its members.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "framework/comm/collective.h"
#include "framework/core/compress_cost.h"
#include "framework/core/layout.h"
#include "framework/core/state_record.h"
#include "framework/device/loss_scale.h"
#include "framework/exchange/boundary_schedule.h"
#include "framework/exchange/gradient_statistics.h"
#include "framework/solver/solver.h"
#include "framework/strategies/strategy.h"

namespace dtrain {

// Residuals and velocities of all workers of a run, summed.  A run that resumes with another number
// of workers begins with them.  An empty vector stands for zeros.
struct KeptVectors {
  std::vector<float> residual, velocity;
};

struct ExchangeSpec {
  const ArenaLayout* layout = nullptr;  // outlives the exchange, as does the strategy
  const Strategy* strategy = nullptr;
  LayerGradients layer_gradients;  // in the order in which the backward pass completes them
  ActorSetup actors;               // placement, buckets of the plan, compressor
  uint64_t seed = 1;               // for compressors that choose entries at random

  SolverConfig solver;
  double epochs = 1;  // length of the whole run, for the learning rate schedule
  BoundarySchedule rule;

  std::string collective = "ordered";
  int64_t chunk_bytes = 0;  // 0: the collective's own rule
  bool overlap_buckets = false;
  // Holds the node of each rank for collectives whose schedule depends on it; empty for the others.
  std::vector<int> plan_nodes;

  std::vector<int> rank_nodes;  // node of each rank; empty if unknown
  bool window = true;           // ranks of one node share vectors in shared memory (NodeWindow)

  // Charged for compression in virtual time; empty: passes over memory are counted, and in a real run
  // the time is measured.
  CompressCost compress_cost;
  bool ghost = false;     // vectors have sizes only, without arithmetic
  bool record = false;    // records the order of events
  bool timeline = false;  // records what each rank does at what time
  // Collects statistics of one worker's gradients; outlives the exchange.  Null if not requested.
  GradientStatistics* statistics = nullptr;

  // Holds the state that the run begins with; samples_applied > 0 after a resume.  Pointers and
  // spans are read only while the ranks are constructed.
  struct Start {
    int64_t samples_applied = 0;
    int64_t updates = 0;             // solver steps that the weights have had
    LossScale loss_scale;            // of a resumed run with `precision: fp16`; else as made
    std::span<const float> weights;  // the whole model, owned by the caller; empty in a ghost run
    // Holds the solver vectors by name.  An absent one is zero; null: all are zero.
    const std::map<std::string, std::vector<float>>* solver = nullptr;
    // Holds the state of single ranks (RankParts::Save).  A rank that is not in the map begins with
    // a fresh state; null: all ranks do.
    const std::map<Rank, StateRecord>* ranks = nullptr;
    const KeptVectors* kept = nullptr;  // initial residual and velocity of worker 0
    // The resumed simulation had already reached its end, so nothing is left to run.
    bool over = false;
  };
  Start start;

  int64_t size() const { return layout->size(); }
  const Placement& placement() const { return actors.placement; }
  CollectiveOptions collective_options() const {
    return {.chunk_bytes = chunk_bytes,
            .node_of = rank_nodes,
            .plan_nodes = plan_nodes,
            .overlap = overlap_buckets,
            .rounds = actors.compress.rounds()};
  }
  StrategyTraits traits() const { return strategy->traits(); }
};

}  // namespace dtrain
