// Coordinator: which workers share a group of GSSP, and how densely each group sends its gradients
// where a compressor leaves that to it.  It acts at rest only: groups are made behind the run's first
// 20 steps, and again at the end of an epoch when a worker has lain nearer to another group's speed
// for two of them; densities follow each epoch (density_policy.h).
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
  bool ShouldRegroup(const Stats& stats);
  void Decide(Effects& effects);
  std::vector<GroupSpeed> Speeds() const;
  void DecideDensities(int64_t epochs, Effects& effects);

  const Placement placement_;
  const GsspOptions options_;
  const DensityPolicy policy_;

  std::vector<int64_t> server_of_;  // by worker
  int64_t grouped_ = 0;             // 1 once it has been by measured speeds
  int64_t regroups_ = 0;            // that moved somebody
  int64_t epochs_ = 0;              // whole ones when the speeds were looked at last
  std::vector<int64_t> compute_;    // by worker: of a step, ns; kUnknown until measured
  std::vector<int64_t> transfers_;  // by worker: the same, at its density
  std::vector<double> densities_;   // by worker
  std::vector<int64_t> heard_;      // by worker: 1 when it has said how fast it is
  std::vector<int64_t> misplaced_;  // by worker: epochs in a row
};

}  // namespace dtrain::gssp
