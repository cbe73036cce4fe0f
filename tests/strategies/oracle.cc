#include "tests/strategies/oracle.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace dtrain {
namespace {

int64_t Sum(const std::vector<int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), int64_t{0});
}

}  // namespace

Oracle::Oracle(const Scenario& scenario, const Placement& placement)
    : scenario_(scenario), placement_(placement), computed_(placement.workers, 0) {
  const Shard shard{std::vector<int64_t>(placement.workers, 0),
                    std::vector<bool>(placement.workers, false)};
  shards_.assign(placement.servers, shard);
}

void Oracle::Expect(bool holds, const std::string& rule) {
  if (!holds && verdict_.empty()) verdict_ = rule;
}

StepReport Oracle::ReportOf(Gradient step) {
  return {.samples = 1 + step.worker,
          .loss_sum = 0.1 * static_cast<double>(step.worker + 1) + static_cast<double>(step.clock)};
}

int64_t Oracle::Shard::Lead(int worker) const {
  return pushed[worker] - *std::min_element(pushed.begin(), pushed.end());
}

// The weights have all updates with time stamps up to clock - bound - 1 (stamps count from 0), and the worker's own.
void Oracle::CheckContent(int worker, const Content& content) {
  const int64_t clock = computed_[worker];
  const int64_t own = scenario_.prefetch ? std::max<int64_t>(clock - 1, 0) : clock;
  Expect(content.applied[worker] == own,
         fmt::format("worker {} starts step {} with {} of its own gradients", worker, clock + 1,
                     content.applied[worker]));
  for (int other = 0; other < placement_.workers; ++other) {
    const int64_t applied = content.applied[other];
    Expect(applied <= computed_[other] && applied >= clock - LastBound(scenario_),
           fmt::format("worker {} starts step {} with {} gradients of worker {}", worker, clock + 1,
                       applied, other));
  }
}

void Oracle::Started(int worker, const Parts& weights) {
  Expect(static_cast<int>(weights.size()) == placement_.servers,
         fmt::format("worker {} starts with {} of {} shards", worker, weights.size(),
                     placement_.servers));
  for (const auto& [shard, content] : weights) CheckContent(worker, content);
  used_[{worker, computed_[worker] + 1}] = weights;
}

void Oracle::Pushed(int worker) { ++computed_[worker]; }

void Oracle::Ended(int worker, const StepOutcome& outcome) {
  StepReport expected = ReportOf({worker, computed_[worker]});
  if (scenario_.synchronous) {
    expected = {};
    for (int w = 0; w < placement_.workers; ++w) {
      const StepReport report = ReportOf({w, computed_[worker]});
      expected.samples += report.samples;
      expected.loss_sum += report.loss_sum;
    }
  }
  Expect(outcome.samples == expected.samples && outcome.loss_sum == expected.loss_sum,
         fmt::format("worker {} ends step {} with {} samples, loss {}", worker, computed_[worker],
                     outcome.samples, outcome.loss_sum));
}

void Oracle::Reached(int server, int worker, const Message& message) {
  Shard& shard = shards_[server];
  bool asks = true;
  if (message.kind == ps::Push::kKind) {
    ++shard.pushed[worker];
    asks = Unpack<ps::Push>(message).wants_weights != 0;
  }
  Expect(!asks || !shard.asked[worker], fmt::format("worker {} asks twice", worker));
  if (asks) shard.asked[worker] = true;
}

double Oracle::ExpectedFactor(int64_t staleness) const {
  if (scenario_.synchronous) return 1;
  const double share = scenario_.share ? 1.0 / placement_.workers : 1.0;
  return share / static_cast<double>(scenario_.damping ? std::max<int64_t>(staleness, 1) : 1);
}

void Oracle::Applied(int server, Content& master, const Content& gradient, const Update& update) {
  Shard& shard = shards_[server];
  int64_t samples = 0, staleness = 0;
  for (const Gradient& term : gradient.terms) {
    int64_t& applied = master.applied[term.worker];
    Expect(term.clock == applied + 1,
           fmt::format("server {} applies gradient {} of worker {} after {} of them", server,
                       term.clock, term.worker, applied));
    applied = term.clock;
    samples += ReportOf(term).samples;
    const int64_t in_weights = Sum(used_[{term.worker, term.clock}][server].applied);
    staleness =
        shard.updates - (scenario_.synchronous ? in_weights / placement_.workers : in_weights);
    int64_t& largest = staleness_[{term.worker, term.clock}];
    largest = std::max(largest, staleness);
  }
  master.mass.insert(master.mass.end(), gradient.mass.begin(), gradient.mass.end());
  ++shard.updates;
  Expect(update.samples == samples,
         fmt::format("server {} counts {} samples instead of {}", server, update.samples, samples));
  Expect(std::abs(update.lr_factor - ExpectedFactor(staleness)) < 1e-12,
         fmt::format("server {} applies a gradient of staleness {} with lr factor {}", server,
                     staleness, update.lr_factor));
  if (!scenario_.synchronous) return;
  for (size_t w = 0; w < gradient.terms.size(); ++w) {
    Expect(gradient.terms[w].worker == static_cast<int>(w), "the sum is not in worker order");
  }
  Expect(static_cast<int>(gradient.terms.size()) == placement_.workers, "the sum is not complete");
}

bool Oracle::MustWait(const Shard& shard, int worker) const {
  if (!scenario_.synchronous) return shard.Lead(worker) > LastBound(scenario_);
  return MayWait(shard, worker);
}

bool Oracle::MayWait(const Shard& shard, int worker) const {
  if (!scenario_.synchronous) return shard.Lead(worker) > scenario_.bound;
  return Sum(shard.pushed) < shard.pushed[worker] * placement_.workers;
}

void Oracle::Answered(int server, int worker, const ps::Weights& weights) {
  Shard& shard = shards_[server];
  Expect(shard.asked[worker], fmt::format("server {} answers worker {} unasked", server, worker));
  shard.asked[worker] = false;
  Expect(!MustWait(shard, worker),
         fmt::format("server {} lets worker {} start {} steps ahead of the slowest", server, worker,
                     shard.Lead(worker)));
  Expect(weights.version == shard.updates, fmt::format("server {} calls its weights {} after {} "
                                                       "updates",
                                                       server, weights.version, shard.updates));
  lead_max_ = std::max(lead_max_, shard.Lead(worker));
}

void Oracle::Settled(int server) {
  const Shard& shard = shards_[server];
  for (int worker = 0; worker < placement_.workers; ++worker) {
    Expect(!shard.asked[worker] || MayWait(shard, worker),
           fmt::format("server {} keeps worker {} waiting, which leads by {}", server, worker,
                       shard.Lead(worker)));
  }
}

void Oracle::Finished(const ProtocolReport& report, std::vector<SymbolicVectors>& vectors) {
  for (int server = 0; server < placement_.servers; ++server) {
    SymbolicVectors& of_server = vectors[placement_.ServerId(server)];
    const Content& master = of_server[of_server.Find(VectorRole::kMaster)][server];
    Expect(master.applied == computed_,
           fmt::format("server {} has applied {} of {}", server, master.applied, computed_));
    CheckMass(server, vectors);
  }
  if (scenario_.steps_in_all == 0) {
    const std::vector<int64_t> all(placement_.workers, scenario_.steps);
    Expect(computed_ == all, fmt::format("workers are left waiting after steps {}", computed_));
  } else {
    Expect(Sum(computed_) <= scenario_.steps_in_all, "the run goes on after its end");
  }
  CheckReport(report);
}

// Every gradient is either applied once or still in its worker's residual.
void Oracle::CheckMass(int server, std::vector<SymbolicVectors>& vectors) {
  SymbolicVectors& of_server = vectors[placement_.ServerId(server)];
  std::map<std::pair<int, int64_t>, int> seen;
  const auto count = [&](const Content& content) {
    for (const Gradient& gradient : content.mass) ++seen[{gradient.worker, gradient.clock}];
  };
  count(of_server[of_server.Find(VectorRole::kMaster)][server]);
  for (int worker = 0; worker < placement_.workers; ++worker) {
    const VectorId residual = vectors[worker].Find("residual");
    if (residual != kNoVector) count(vectors[worker][residual][server]);
  }
  for (int worker = 0; worker < placement_.workers; ++worker) {
    for (int64_t clock = 1; clock <= computed_[worker]; ++clock) {
      const int times = seen[{worker, clock}];
      Expect(times == 1, fmt::format("server {}: gradient {} of worker {} is there {} times",
                                     server, clock, worker, times));
    }
  }
}

// With several servers the server that counts the missed progress knows its own shard only.
void Oracle::CheckReport(const ProtocolReport& report) {
  Expect(Sum(report.staleness) == Sum(computed_),
         fmt::format("{} of {} gradients have a staleness", Sum(report.staleness), Sum(computed_)));
  ProtocolReport expected;
  for (const auto& [gradient, staleness] : staleness_) expected.AddStaleness(staleness);
  const bool all_told = scenario_.steps_in_all == 0 && !scenario_.prefetch;
  Expect((placement_.servers > 1 && !all_told) || report.staleness == expected.staleness,
         fmt::format("staleness {} instead of {}", report.staleness, expected.staleness));
  Expect(scenario_.synchronous || report.clock_lead_max == lead_max_,
         fmt::format("largest lead {} instead of {}", report.clock_lead_max, lead_max_));
}

}  // namespace dtrain
