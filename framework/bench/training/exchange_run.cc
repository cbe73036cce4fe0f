#include "framework/bench/training/exchange_run.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "framework/cluster/compute_model.h"
#include "framework/cluster/pacing.h"
#include "framework/comm/gather.h"
#include "framework/core/error.h"
#include "framework/core/process.h"
#include "framework/core/random.h"
#include "framework/core/text.h"
#include "framework/results/summary.h"
#include "framework/setup/run_setup.h"
#include "framework/setup/schedule_profile.h"
#include "framework/simulate/simulated_run.h"
#include "framework/train/step_profile.h"
#include "framework/train/training_step.h"

namespace dtrain {
namespace {

// Acts as the worker of this rank, but sleeps instead of computing.
class Sleeper {
 public:
  Sleeper(const SimulationSetup& setup, int worker, Exchange& exchange)
      : setup_(setup),
        worker_(worker),
        exchange_(exchange),
        compute_(setup.cluster, setup.profile, setup.exchange.placement().workers, setup.seed) {
    if (!setup.trace.empty()) compute_.UseTrace(setup.trace);
  }

  // Runs until the exchange is quiescent.
  BoundaryState Run() {
    for (;;) {
      const Nanos asked = WallNow();
      const StepReport report = ReportOf(steps_);
      Turn turn = exchange_.Begin(report.samples);
      if (turn.boundary) return turn.state;
      turn.weights = Blob();
      Step(report);
      step_seconds_.push_back(ToSeconds(WallNow() - asked));
    }
  }

  RankReport report() const {
    int64_t samples = 0;
    for (int64_t step = 0; step < steps_; ++step) samples += ReportOf(step).samples;
    return {steps_, samples, slept_, exchange_.stats()};
  }
  const std::vector<double>& step_seconds() const { return step_seconds_; }

 private:
  StepReport ReportOf(int64_t step) const { return SampleCounts(setup_.exchange, worker_, step); }

  void Step(const StepReport& report) {
    const Nanos start = WallNow();
    const StepTiming timing = compute_.Step(worker_, steps_, report.samples);
    const std::vector<Range>& layer_gradients = setup_.exchange.layer_gradients.ranges;
    if (setup_.exchange.actors.compress.on()) FillGradient();
    for (size_t gradient = 0; gradient + 1 < layer_gradients.size(); ++gradient) {
      if (setup_.exchange.traits().collectives) clock_.SleepUntil(start + timing.ready[gradient]);
      exchange_.Ready(layer_gradients[gradient]);
    }
    clock_.SleepUntil(start + timing.end);
    exchange_.Ready(layer_gradients.back());
    slept_ += timing.end;
    ++steps_;
    StepReport ended = report;
    ended.compute = timing.end;
    exchange_.End(ended);
  }

  // Fills the gradient with random numbers, since selectors do not send zeros.
  void FillGradient() {
    if (values_.empty()) {
      const Random random(setup_.seed, Purpose::kSelfTest, static_cast<uint64_t>(worker_));
      values_.resize(static_cast<size_t>(setup_.exchange.size()));
      for (size_t i = 0; i < values_.size(); ++i) values_[i] = random.Normal(i);
    }
    std::copy(values_.begin(), values_.end(), exchange_.gradients().data);
  }

  const SimulationSetup& setup_;
  const int worker_;
  Exchange& exchange_;
  std::vector<float> values_;
  ComputeModel compute_;
  PacingClock clock_;
  int64_t steps_ = 0;
  Nanos slept_ = 0;
  std::vector<double> step_seconds_;
};

// Returns the host number of each rank, as a training run does: strategies without their own node option group ranks by
// host.
std::vector<int> HostsOfRanks(Transport& transport) {
  std::map<std::string, int> numbers;
  std::vector<int> hosts;
  for (const std::string& host : AllGather(transport, HostName())) {
    const int next = static_cast<int>(numbers.size());
    hosts.push_back(numbers.try_emplace(host, next).first->second);
  }
  return hosts;
}

// Returns the exchange's specification; throws UsageError if the number of ranks does not match.
ExchangeSpec SpecOf(const SimulationSetup& setup, Transport& transport) {
  ExchangeSpec spec = setup.exchange;
  const Placement& placement = spec.placement();
  if (transport.size() != placement.ranks()) {
    throw UsageError(
        fmt::format("{} and {} need {}, there are {}", Counted(placement.workers, "worker"),
                    Counted(placement.servers, "server"), Counted(placement.ranks(), "rank"),
                    transport.size()),
        "start as many ranks, or change cluster.workers");
  }
  if (spec.rank_nodes.empty()) spec.rank_nodes = HostsOfRanks(transport);
  return spec;
}

}  // namespace

SumProfile MeasureSumsOf(const RunConfig& config, const std::optional<ModelProfile>& profile,
                         Transport& transport) {
  const SimulatedRun run(config, profile, false);
  const ExchangeSpec spec = SpecOf(run.setup(), transport);
  return SumProfileOf(MeasureAllReduceTimes(transport, spec).value(), config);
}

Summary RunExchange(const RunConfig& config, const std::optional<ModelProfile>& profile,
                    const std::vector<std::vector<double>>& trace, Transport& transport) {
  SimulatedRun run(config, profile, false);
  run.UseTrace(trace);
  const SimulationSetup& setup = run.setup();
  ExchangeSpec spec = SpecOf(setup, transport);
  const Placement& placement = spec.placement();
  const std::vector<float> zeros(static_cast<size_t>(spec.size()));
  spec.start.weights = zeros;
  const std::unique_ptr<Exchange> exchange = MakeExchange(spec, 1, config.stall_seconds, transport);
  Sleeper sleeper(setup, transport.rank(), *exchange);
  exchange->AtBoundary([](Transport& all) { all.Barrier(); });  // begin together
  const Nanos begun = WallNow();
  const BoundaryState end = sleeper.Run();
  const Nanos ended = WallNow();
  Summary summary;
  exchange->AtBoundary([&](Transport& all) {
    GatherReports(all, sleeper.report(), placement.workers, config.batch, summary);
  });
  summary.status = "completed";
  summary.compute = "ghost";
  DescribeConfig(config, summary);
  summary.model = setup.profile.model;
  summary.steps = static_cast<double>(end.samples_applied) / static_cast<double>(config.batch);
  summary.seconds = ToSeconds(ended - begun);
  summary.samples_per_second = static_cast<double>(end.samples_applied) / summary.seconds;
  summary.step_seconds = StepSecondsOf(sleeper.step_seconds());
  return summary;
}

}  // namespace dtrain
