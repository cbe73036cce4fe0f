// ExchangeSpec: the exchange of one run, described once - from config, model and execution plan -
// for whoever carries it out: inline, on a thread of its own, in virtual time, or again from a
// record.
//
// Nobody changes it while the run goes on, but for the buckets, at a boundary (Exchange::SetBuckets); no
// part of the exchange has a copy of what is in it.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "framework/comm/collective.h"
#include "framework/core/layout.h"
#include "framework/core/state_record.h"
#include "framework/exchange/boundary_schedule.h"
#include "framework/exchange/gradient_study.h"
#include "framework/solver/solver.h"
#include "framework/strategies/strategy.h"

namespace dtrain {

// What the workers of a run have kept to themselves, summed: for a run of other workers.  Empty: zeros.
struct KeptVectors {
  std::vector<float> residual, velocity;
};

struct ExchangeSpec {
  const ArenaLayout* layout = nullptr;  // outlives the exchange, as does the strategy
  const Strategy* strategy = nullptr;
  GradientPieces pieces;  // as the backward pass announces them
  ActorSetup actors;      // placement, buckets of the plan, compressor
  uint64_t seed = 1;      // of selections that draw lots

  SolverConfig solver;
  double epochs = 1;  // of the whole run, for the schedule
  BoundarySchedule rule;

  std::string collective = "ordered";
  int64_t chunk_bytes = 0;  // 0: by the collective's rule
  bool overlap_buckets = false;
  std::vector<int> plan_nodes;  // by which the collective's plan goes; empty where it does not

  std::vector<int> rank_nodes;  // the node of each rank; empty where it is not known
  bool window = true;           // real ranks of a node read each other's vectors where they lie

  bool ghost = false;              // sizes only: no arithmetic
  bool record = false;             // notes the order of events
  bool timeline = false;           // notes what each rank was doing when
  bool watch_sums = false;         // notes how long sums take (sum_times.h)
  GradientStudy* study = nullptr;  // of a worker; outlives the exchange.  Null: not asked for

  // Where the run begins; > 0 after a resume.  What is borrowed is read while a rank is made.
  struct Start {
    int64_t samples_applied = 0;
    int64_t updates = 0;             // that the weights have had
    std::span<const float> weights;  // of the whole model, the caller's; empty in a ghost run
    // By name; absent ones are zero.  Null: all are.
    const std::map<std::string, std::vector<float>>* solver = nullptr;
    // What ranks have kept of their own (RankParts::Save); one that is not in it begins as all did
    // once.  Null: so do all.
    const std::map<Rank, StateRecord>* ranks = nullptr;
    const KeptVectors* kept = nullptr;  // with which worker 0 begins
    // A simulation was over there, by its rule or by who looked at it: nothing happens any more.
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
  bool synchronous() const { return strategy->synchronous(); }
};

}  // namespace dtrain
