#include "framework/runtime/run/run_basis.h"

#include <utility>

#include <fmt/format.h>

#include "framework/comm/gather.h"
#include "framework/device/cpu/threads.h"
#include "framework/runtime/launch/world.h"
#include "framework/runtime/run/training_step.h"
#include "framework/runtime/setup/run_exchange.h"
#include "framework/runtime/setup/run_setup.h"

namespace dtrain {

RunBasis AgreeOnBasis(Transport& transport, const RunConfig& config, const TrainRequest& request,
                      RunOutputs& outputs) {
  RunBasis basis;
  const bool root = transport.rank() == 0;
  const Placement placement = PlacementOf(config);
  const int workers = placement.workers;
  const int threads = AgreeOnThreads(transport, workers);
  TryTogether(transport, [&] {
    // First of all: a run that is refused must not write into the other's folder, not even an
    // error.
    if (root) outputs.CreateFolder(request.resume != "none");
    ReadModel(config);  // its mistakes come before the data's, which may take a while
    if (placement.IsWorker(transport.rank())) CheckPrecision(config.precision);
    basis.dataset = LoadData(config);
    basis.graph = std::make_unique<Graph>(ReadModel(config, basis.dataset->fields()));
    if (!root) return;
    basis.layout = ModelLayoutOf(*basis.graph, *basis.dataset);
    basis.start = FindStart(*basis.graph, basis.layout, config, request, outputs.folder());
    basis.plan = DecidePlan(config, *basis.graph, workers, threads);
    FollowPlanOf(basis.start, config, basis.plan);
    if (basis.start.plan) ForgetUnknownKernels(*basis.graph, basis.plan);
  });
  basis.plan = PlanFromJson(Broadcast(transport, root ? ToJson(basis.plan) : ""), "rank 0's plan");
  basis.start = BroadcastStart(transport, std::move(basis.start));
  ApplyThreadBudget(basis.plan.threads);
  AgreeOnRun(transport, config, *basis.graph, basis.plan, *basis.dataset);
  return basis;
}

void CheckPosition(const TrainingPosition& position, const RestRule& rule, bool synchronous) {
  const int64_t expected = rule.SamplesOf(position.step);
  const bool fits = synchronous ? position.samples_applied == expected
                                : rule.StepsOf(position.samples_applied) == position.step;
  if (fits) return;
  throw SharedError(
      ExitCode::kCheckpoint,
      fmt::format("the checkpoint's step {} had applied {} samples, here it would be {}",
                  position.step, position.samples_applied, expected),
      "resume with the batch and the data set of the run that wrote it");
}

}  // namespace dtrain
