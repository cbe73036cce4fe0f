// Reads plan.json of a run, which checkpoints and records contain as well.
#include "framework/core/execution_plan.h"
#include "tests/fuzz/fuzz_target.h"

namespace dtrain::fuzz {
namespace {

bool Plan(std::string_view input) {
  return Accepts(ExitCode::kUsage, [&] {
    const ExecutionPlan plan = PlanFromJson(input, "plan.json");
    const std::string written = ToJson(plan);
    Require(ReadAgain([&] { return PlanFromJson(written, "again"); }) == plan,
            "another plan was read again");
    Require(Differences(plan, plan).empty(), "a plan differs from itself");
    Differences(plan, ExecutionPlan{});
  });
}

DTRAIN_FUZZ_TARGET("plan", Plan);

}  // namespace
}  // namespace dtrain::fuzz
