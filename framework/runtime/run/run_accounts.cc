#include "framework/runtime/run/run_accounts.h"

#include <algorithm>

namespace dtrain {

void RunAccounts::AddStep(Nanos waited, Nanos started, Nanos computed, Nanos ended) {
  const Nanos step = waited + ended - started;
  exposed = waited + ended - computed;
  compute += computed - started;
  training += step;
  ++steps;
  step_seconds.push_back(ToSeconds(step));
}

double RunAccounts::SamplesPerSecond(int64_t samples) const {
  return static_cast<double>(samples) / std::max(ToSeconds(training), 1e-9);
}

void RunAccounts::Describe(int64_t samples, Summary& summary) const {
  summary.seconds = seconds();
  if (training <= 0) return;
  summary.samples_per_second = SamplesPerSecond(samples);
  summary.step_seconds = StepSecondsOf(step_seconds);
}

}  // namespace dtrain
