// Coordinator: decides which workers share a group of GSSP and, if the compressor leaves it to the
// strategy, the density of each group's gradients.  It acts only at boundaries.  Groups are made
// after the first 20 steps of the run, and again at the end of an epoch if some worker was nearer
// to another group's speed in two epochs in a row.  Densities are decided every epoch
// (density_policy.h).
//
// A worker's speed is its compute time, averaged over the boundaries, plus the time of its
// transfers without contention, which the servers probe once, at the first of these boundaries.
// Transfer times that are measured during steps depend on the workers that share the server's link:
// if it is saturated, steps of all workers of a group take equally long, however fast the workers
// are.  A worker that is too slow to be measured within the 20 steps (about five times slower than
// the others) delays the first grouping to the end of the epoch.
//
// A group keeps its server as long as it keeps most of its workers, even if its place in the order
// of speeds changes.  If no worker changes its server, no message is sent.  A worker that joins a
// group keeps its density until those of the next epoch are decided.
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
  int64_t grouped_ = 0;             // 1 once groups were made by measured speeds
  int64_t regroups_ = 0;            // number of regroupings that moved a worker
  int64_t epochs_ = 0;              // complete epochs at the last decision
  int64_t steps_ = 0;               // global batches, by the last Stats of a worker
  int64_t asked_ = 0;               // 1 once the servers were asked to probe
  int64_t epochs_heard_ = 0;        // complete epochs, by the last Stats of a worker
  std::vector<int64_t> compute_;    // by worker: compute time of a step, ns; kUnknown: not measured
  std::vector<int64_t> transfers_;  // by worker: transfers of a step, at its density, under load
  std::vector<int64_t> alone_;      // by worker: dense transfers without load; kUnknown: not probed
  std::vector<double> densities_;   // by worker
  std::vector<int64_t> heard_;      // by worker: 1 if its Stats of this boundary have arrived
  std::vector<int64_t> misplaced_;  // by worker: epochs in a row in which it was misplaced
};

}  // namespace dtrain::gssp
