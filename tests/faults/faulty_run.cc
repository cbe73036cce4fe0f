#include "tests/faults/faulty_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "tests/support/source_at_once.h"
#include "tests/support/strategy_text.h"

namespace dtrain {
namespace {

constexpr int kMostWorkers = 6;
constexpr int64_t kSamples = 8;    // per gradient
constexpr int64_t kPlaces = 1200;  // per worker: more than it makes steps
constexpr int64_t kSize = kMostWorkers * kPlaces;
const ArenaLayout kLayout{{{"fc.weight", {kSize / 3}, {0, kSize / 3}, true},
                           {"conv.weight", {kSize - kSize / 3}, {kSize / 3, kSize}, true}}};

class Ones : public SourceAtOnce {
 public:
  Ones(int workers, const FaultSchedule& schedule) : computed(static_cast<size_t>(workers)) {
    for (const Fault& fault : schedule) {
      if (fault.kind == Fault::Kind::kNaN) nans_.insert({fault.who, fault.number});
    }
  }
  StepReport Compute(int worker, int64_t step, const Blob&, float* gradients) override {
    DT_CHECK(step < kPlaces) << "worker " << worker << " makes more steps than it has places";
    const bool is_nan = nans_.contains({worker, step});
    nan = nan || is_nan;
    std::fill_n(gradients, kSize, 0.0F);
    gradients[worker * kPlaces + step] = is_nan ? std::numeric_limits<float>::quiet_NaN() : 1;
    ++computed[static_cast<size_t>(worker)];
    return {.samples = kSamples, .loss_sum = 1};
  }
  std::vector<int64_t> computed;
  bool nan = false;

 private:
  std::set<std::pair<int64_t, int64_t>> nans_;
};

bool IsFinite(const std::vector<float>& values) {
  return std::ranges::all_of(values, [](float v) { return std::isfinite(v); });
}

// The draws are the same whatever the strategy uses of them.
std::string DrawKeys(const std::string& name, int workers, int64_t staleness, Draws& draws) {
  const bool has_servers = name.starts_with("ps_") || name == "gssp" || name == "inhad";
  if (!has_servers) return "{}";
  std::string keys =
      fmt::format("servers: {}, placement: {}", draws.Between(1, name == "gssp" ? workers : 3),
                  draws.Of({"dedicated", "colocated"}));
  if (name == "ps_ssp") keys += fmt::format(", staleness: {}", staleness);
  if (name == "ps_dssp")
    keys += fmt::format(", staleness: {}, staleness_max: {}", staleness / 2, staleness);
  if (name == "ps_asp") keys += fmt::format(", prefetch: {}", draws.Coin());
  if (name == "gssp") {
    keys += fmt::format(
        ", staleness: {}, inside: {}, exchange: {}, exchange_every: {}, grouping: {}, equal_size: "
        "{}",
        staleness, draws.Of({"ssp", "ssp", "bsp"}), draws.Of({"gradients", "averaging"}),
        draws.Between(0, 5), draws.Of({"measured", "static"}), draws.Coin());
  }
  if (name == "inhad") {
    keys += fmt::format(
        ", n: {}, s_max: {}, late: {}, modulate: {}, broadcast: {}, lockstep: {}, pipelined: {}, "
        "in_interval: {}, "
        "pull_timeout: {}",
        draws.Between(1, 4), draws.Between(1, 9), draws.Of({"wait", "drop", "keep"}),
        draws.Of({"exact", "mean", "off"}), draws.Of({"all", "pulled"}), draws.Between(0, 3) == 0,
        draws.Coin(), draws.Between(0, 1) * 20, draws.Of({"0", "0.3", "10000"}));
  }
  return "{" + keys + "}";
}

ClusterConfig DrawCluster(int workers, Draws& draws) {
  ClusterConfig cluster;
  cluster.slowdown.clear();
  const bool alike = draws.Coin();  // then many events happen at the same time
  for (int worker = 0; worker < workers; ++worker) {
    cluster.slowdown.push_back(alike ? 1 + worker % 2 : draws.Real(1, 4));
  }
  cluster.step_seconds = draws.Real(0.001, 0.05);
  cluster.memory_gbyte_s = draws.Real(0.01, 10);
  cluster.network.per_node = static_cast<int>(draws.Between(1, 3));
  cluster.network.queue = draws.Coin() ? NetworkModel::Queue::kFair : NetworkModel::Queue::kFifo;
  cluster.network.between_nodes = {draws.Real(0.01, 10), draws.Real(0.1, 2000), 0, 0};
  return cluster;
}

}  // namespace

FaultyRun::FaultyRun(const std::string& strategy, uint64_t seed)
    : name_(strategy.substr(0, strategy.find('+'))), seed_(seed) {
  Draws draws(seed);
  if (strategy != name_) {
    const std::string compressor = strategy.substr(name_.size() + 1);
    compress_ = "{name: " + compressor + (compressor == "gdtopk" ? "}" : ", density: 0.01}");
  }
  workers_ = static_cast<int>(draws.Between(2, kMostWorkers));
  steps_ = draws.Between(4, 25);
  chaptered_ = draws.Coin();
  const int64_t staleness = draws.Between(0, 4);
  if (name_ == "ps_ssp" || name_ == "ps_dssp") staleness_ = staleness;
  cluster_ = DrawCluster(workers_, draws);
  keys_ = DrawKeys(name_, workers_, staleness, draws);
  if (name_ == "gssp" && keys_.find("inside: ssp") != std::string::npos) staleness_ = staleness;
  strategy_ = MakeStrategy("{name: " + name_ + (keys_ == "{}" ? "}" : ", " + keys_.substr(1)));
}

std::string FaultyRun::Describe() const {
  return fmt::format("{} {} {}, {} workers, seed {}", name_, keys_, compress_, workers_, seed_);
}

SimulationSetup FaultyRun::Setup() const {
  SimulationSetup setup;
  setup.seed = seed_;
  setup.cluster = cluster_;
  setup.profile.batch = kSamples;
  setup.profile.layers = {{"conv", kSize - kSize / 3, 2400, 0, 0, 600},
                          {"fc", kSize / 3, 1600, 0, 0, 400}};
  ExchangeSpec& spec = setup.exchange;
  spec.solver = MakeSolver("{name: sgd, lr: 1, momentum: 0, weight_decay: 0}");
  spec.layout = &kLayout;
  spec.strategy = strategy_.get();
  spec.layer_gradients = {{{0, kSize / 3}, {kSize / 3, kSize}}};
  spec.actors = {strategy_->Place(workers_), kSize, strategy_->Buckets(spec.layer_gradients)};
  spec.actors.compress = MakeCompress(compress_);
  if (name_ == "inhad") {
    for (int worker = 0; worker < workers_; ++worker)
      spec.actors.placement.node_of[worker] = worker / 2;
  }
  BoundarySchedule& rule = spec.rule;
  rule = {.epoch_samples = kSamples * workers_ * std::max<int64_t>(steps_ / 3, 1),
          .batch = kSamples * workers_};
  rule.last_samples = rule.batch * steps_;
  if (chaptered_) rule.checkpoint_every_steps = std::max<int64_t>(steps_ / 4, 1);
  const Strategy::Boundaries boundaries = strategy_->boundaries(spec.actors.compress);
  rule.strategy_every_epochs = boundaries.every_epochs;
  rule.strategy_after_steps = boundaries.after_steps;
  return setup;
}

FaultyRun::Outcome FaultyRun::Run(const FaultSchedule& schedule) const {
  SimulationSetup setup = Setup();
  std::vector<std::vector<double>> seconds;
  for (int worker = 0; worker < workers_; ++worker) {
    seconds.emplace_back(kPlaces,
                         cluster_.step_seconds * cluster_.slowdown[static_cast<size_t>(worker)]);
  }
  Apply(schedule, std::move(seconds), setup);
  Ones source(workers_, schedule);
  setup.source = &source;
  const std::vector<float> initial(kSize, 0.0F);
  setup.exchange.start.weights = initial;
  SimulationResult result = Simulation(setup).Run();
  return {std::move(result), source.computed, source.nan};
}

FaultSchedule FaultyRun::Draw() const {
  Draws draws(seed_ + 1'000'000);
  Possible possible;
  possible.ranks = strategy_->Place(workers_).ranks();
  possible.workers = workers_;
  possible.steps = steps_;
  possible.seconds = ToSeconds(Run({}).result.time);
  possible.envelopes = strategy_->Place(workers_).servers > 0 && possible.ranks > 1;
  possible.nan = draws.Between(0, 4) == 0;
  possible.deaths = strategy_->StopsAtDeath().empty();
  return DrawSchedule(draws, possible);
}

std::string FaultyRun::Broken(const FaultSchedule& schedule) const {
  Outcome outcome;
  try {
    outcome = Run(schedule);
  } catch (const Error& error) {
    return error.what();
  } catch (const std::logic_error& error) {  // DT_CHECK
    return error.what();
  }
  const std::string broken = BrokenBy(outcome);
  if (!broken.empty()) return broken;
  if (Run(schedule).result.state_sha256 != outcome.result.state_sha256)
    return "the same run again ends otherwise";
  // A synchronous run does not depend on time: however late messages are, its numbers are those of a run without
  // faults.
  if (!strategy_->traits().lockstep || outcome.nan) return "";
  return Run({}).result.weights == outcome.result.weights
             ? ""
             : "the weights depend on when things happen";
}

std::string FaultyRun::BrokenBy(const Outcome& outcome) const {
  const SimulationResult& result = outcome.result;
  if (!outcome.nan && !result.end.finite) return "the run has diverged without a NaN";
  if (result.end.finite && !IsFinite(result.weights))
    return "weights of a run that has not diverged are NaN";
  // A gradient with a NaN has no effect if it is dropped or lost with its worker.
  const int64_t unused = result.protocol.Total("dropped") + result.protocol.Total("lost");
  if (outcome.nan && result.end.finite && unused == 0 && compress_.empty()) {
    return "a NaN was applied and not noticed";
  }
  if (!result.end.finite) return "";
  const std::string broken = BrokenAccounts(outcome);
  return broken.empty() ? BrokenWeights(outcome) : broken;
}

std::string FaultyRun::BrokenAccounts(const Outcome& outcome) const {
  const SimulationResult& result = outcome.result;
  const ProtocolReport& protocol = result.protocol;
  int64_t steps = 0;
  for (const SimulatedWorker& worker : result.workers) steps += worker.steps;
  if (result.end.samples_applied < kSamples * workers_ * steps_) return "the run ended early";
  if (result.end.samples_applied != kSamples * steps) {
    return fmt::format("{} samples of {} steps", result.end.samples_applied, steps);
  }
  if (strategy_->Place(workers_).servers > 0 &&
      protocol.gradients() + protocol.Total("dropped") + protocol.Total("lost") != steps) {
    return fmt::format("{} gradients applied, {} dropped and {} lost of {}", protocol.gradients(),
                       protocol.Total("dropped"), protocol.Total("lost"), steps);
  }
  if (staleness_ >= 0 && protocol.clock_lead_max > staleness_) {
    return fmt::format("a worker is {} steps ahead", protocol.clock_lead_max);
  }
  return "";
}

std::string FaultyRun::BrokenWeights(const Outcome& outcome) const {
  const SimulationResult& result = outcome.result;
  int64_t applied = 0;
  float least = std::numeric_limits<float>::max(), most = 0;
  for (int64_t place = 0; place < kSize; ++place) {
    const float change = -result.weights[static_cast<size_t>(place)];
    if (change == 0) continue;
    ++applied;
    const int64_t worker = place / kPlaces, step = place % kPlaces;
    if (worker >= workers_ || step >= outcome.computed[static_cast<size_t>(worker)]) {
      return fmt::format("step {} of worker {} was applied and not computed", step, worker);
    }
    if (change < 0) return fmt::format("step {} of worker {} was taken back", step, worker);
    least = std::min(least, change);
    most = std::max(most, change);
  }
  if (!compress_.empty()) return "";  // some of it waits in residuals
  const bool all_reduce = strategy_->Place(workers_).servers == 0;
  const int64_t expected =
      all_reduce ? outcome.computed[0] * workers_ : result.protocol.gradients();
  if (applied != expected)
    return fmt::format("{} of {} gradients are in the weights", applied, expected);
  // All gradients have equal weight, except in these strategies.
  const bool equal = name_ != "inhad" && name_ != "gssp";
  if (equal && least != most)
    return fmt::format("a gradient counts {:g} times another", most / least);
  return "";
}

}  // namespace dtrain
