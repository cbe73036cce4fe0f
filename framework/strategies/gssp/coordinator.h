// Coordinator: which workers share a group of GSSP, and how densely each group sends its gradients
// where a compressor leaves that to it.  It acts at a boundary only: groups are made behind the run's first
// 20 steps, and again at the end of an epoch when a worker has lain nearer to another group's speed
// for two of them; densities follow each epoch (density_policy.h).
//
// A worker's speed is its compute, mixed over the boundaries, plus what its transfers take by themselves,
// which the servers are asked to probe once, at the first of these boundaries.  Transfers that are measured during
// steps depend on who shares the server's link: where it is busy, steps of all workers of a group
// take equally long, however fast they are.  A worker that computes so slowly that it has not been
// measured within the 20 steps (about five times slower than the others) delays the first grouping
// to the end of the epoch.
//
// A group keeps its server as long as it keeps most of its workers, whatever its place in the order
// of speeds; where all of them do nothing is said.  A worker that joins a group keeps its density
// until those of the next epoch are decided.
#pragma once

#include <string>
#include <vector>

#include "framework/strategies/actor.h"
#include "framework/strategies/gssp/density_policy.h"
#include "framework/strategies/gssp/grouping.h"
#include "framework/strategies/gssp/messages.h"
#include "framework/strategies/gssp/options.h"
#include "framework/strategies/placement.h"
#include "framework/strategies/strategy.h"

namespace dtrain::gssp {

class Coordinator : public Actor {
 public:
  Coordinator(const ActorSetup& setup, const GsspOptions& options, std::vector<int64_t> server_of);

  std::vector<VectorSpec> Vectors() const override { return {}; }
  void OnMessage(ActorId from, const Message& message, Effects& effects) override;

  void Visit(StateVisitor& visitor) override;
  std::string Describe() const override;
  void Report(ProtocolReport& report) const override;

 private:
  std::vector<double> OwnTimes() const;
  GroupingRule Rule() const;
  bool MustProbe() const;
  void AskForProbes(Effects& effects);
  bool ShouldRegroup();
  void Decide(Effects& effects);
  std::vector<GroupSpeed> Speeds() const;
  void DecideDensities(Effects& effects);

  const Placement placement_;
  const GsspOptions options_;
  const DensityPolicy policy_;

  std::vector<int64_t> server_of_;  // by worker
  int64_t grouped_ = 0;             // 1 once it has been by measured speeds
  int64_t regroups_ = 0;            // that moved somebody
  int64_t epochs_ = 0;              // whole ones when the speeds were looked at last
  int64_t steps_ = 0;               // global batches when workers were heard last
  int64_t asked_ = 0;               // 1 once the servers have been asked to probe
  int64_t epochs_heard_ = 0;        // whole ones then
  std::vector<int64_t> compute_;    // by worker: of a step, ns; kUnknown until measured
  std::vector<int64_t> transfers_;  // by worker: the same, at its density, among the others
  std::vector<int64_t> alone_;      // by worker: the same, dense, by itself; kUnknown until probed
  std::vector<double> densities_;   // by worker
  std::vector<int64_t> heard_;      // by worker: 1 when it has said how fast it is
  std::vector<int64_t> misplaced_;  // by worker: epochs in a row
};

}  // namespace dtrain::gssp
