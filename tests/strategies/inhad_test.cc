// The rules of InHAD (../shared: inhad.md 7), held against thousands of random histories.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "framework/strategies/inhad/messages.h"
#include "framework/strategies/inhad/options.h"
#include "tests/strategies/histories.h"
#include "tests/strategies/world.h"

namespace dtrain::inhad {
namespace {

using world::Content;
using world::Parts;
using world::Term;
using world::World;

struct Case {
  world::Scenario scenario;
  InhadOptions options;
  int servers = 1;
};

using GradientId = std::pair<int, int64_t>;  // worker and clock

class InhadRules : public world::Rules {
 public:
  InhadRules(const Case& run, const Placement& placement)
      : run_(run),
        placement_(placement),
        bound_(run.options.staleness_bound()),
        versions_(placement.servers, 0),
        known_(placement.nodes(), 0),
        untaken_(placement.workers, 0),
        last_base_(placement.workers, -1) {}

  void Started(ActorId worker, Term step, const Parts& weights) override {
    const int64_t version = weights.begin()->second.version;
    for (const auto& [shard, content] : weights) {
      Expect(content.version == version,
             fmt::format("worker {} sees versions {} and {}", worker, version, content.version));
    }
    Expect(static_cast<int>(weights.size()) == placement_.servers, "a part of the weights lacks");
    Expect(version <= updates(), "weights from the future");
    Expect(untaken_[worker] < 2,
           fmt::format("worker {} starts with two gradients under way", worker));
    Expect(!run_.options.lockstep || version > last_base_[worker],
           fmt::format("worker {} starts again with version {}", worker, version));
    last_base_[worker] = version;
    base_[{worker, step.clock}] = version;
  }

  void Waits(ActorId worker) override {
    const bool newer = !run_.options.lockstep || newest_[worker] > last_base_[worker];
    Expect(untaken_[worker] == 2 || !newer, fmt::format("worker {} waits for nothing", worker));
  }

  void Sent(ActorId from, ActorId to, const Message& message, const Parts& parts) override {
    if (message.kind == Submit::kKind) {
      ++untaken_[from];
      ++submitted_;
    } else if (message.kind == Pull::kKind) {
      asked_[placement_.NumberOf(to)].insert(Unpack<Pull>(message).round);
    } else if (message.kind == Grad::kKind) {
      CheckGrad(placement_.NumberOf(from), Unpack<Grad>(message), parts);
    } else {
      Expect(parts.empty() || message.kind == Weights::kKind, "a vector travels unasked");
    }
  }

  void Reached(ActorId to, ActorId from, const Message& message, const Parts&) override {
    if (message.kind == Taken::kKind) --untaken_[to];
    if (placement_.IsWorker(to) && message.kind == Weights::kKind) {
      newest_[to] = Unpack<Weights>(message).version;
    }
    if (message.kind != In::kKind) return;
    int64_t& known = known_[placement_.NumberOf(from)];
    const int64_t submitted = Unpack<In>(message).submitted;
    Expect(submitted >= known, "an iteration number goes back");
    known = submitted;
  }

  void Applied(ActorId server, int shard, const Content& sum, const Update& update) override {
    Expect(placement_.ServerOf(server) == shard, "a server updates another's shard");
    const int64_t version = versions_[shard]++;
    const auto count = static_cast<int64_t>(sum.terms.size());
    Expect(count > 0, "an update of nothing");
    Expect(std::abs(update.gradient_factor * static_cast<double>(count) - 1) < 1e-12,
           fmt::format("{} gradients, and factor {}", count, update.gradient_factor));
    std::set<GradientId> gradients;
    int64_t samples = 0;
    for (const Term& term : sum.terms) {
      CheckTerm(term, version);
      gradients.insert({term.worker, term.clock});
      samples += 1 + term.worker;
    }
    Expect(static_cast<int64_t>(gradients.size()) == count, "a gradient is twice in an update");
    Expect(update.samples == samples, "samples are miscounted");
    if (shard > 0) {
      Expect(gradients == by_version_[version],
             fmt::format("server {} makes another update {}", shard, version + 1));
      return;
    }
    by_version_[version] = gradients;
    for (const GradientId& gradient : gradients) {
      Expect(applied_.insert(gradient).second, "a gradient is applied twice");
    }
    const bool together = run_.options.lockstep && run_.options.n == 1;
    if (together && run_.options.pull_timeout == 0) CheckLockstep(sum, version);
  }

  void Finished(const ProtocolReport& report) override {
    Expect(*std::min_element(versions_.begin(), versions_.end()) == updates(),
           "a server is behind at the end");
    const auto applied = static_cast<int64_t>(applied_.size());
    Expect(applied + report.dropped == submitted_,
           fmt::format("{} applied and {} dropped of {}", applied, report.dropped, submitted_));
    Expect(run_.options.late == Late::kDrop || run_.options.pull_timeout > 0 || report.dropped == 0,
           "a gradient is dropped");
    Expect(report.gradients() == applied, "a gradient has no staleness");
    const bool bound = run_.options.late != Late::kKeep && run_.options.pull_timeout == 0;
    Expect(!bound || report.merged == 0, "bases are mixed");
    int64_t sum = 0;
    for (const auto& [version, gradients] : by_version_) {
      for (const GradientId& gradient : gradients) sum += version - base_[gradient];
    }
    Expect(std::llround(report.staleness_mean() * static_cast<double>(applied)) == sum,
           "staleness is miscounted");
    Expect(report.rounds == updates(), "rounds are miscounted");
  }

 private:
  int64_t updates() const { return versions_[0]; }

  // What a node sends is what was asked for, and says what it is.
  void CheckGrad(int node, const Grad& grad, const Parts& parts) {
    Expect(asked_[node].contains(grad.round), fmt::format("node {} sends unasked", node));
    for (const auto& [shard, content] : parts) {
      Expect(static_cast<int64_t>(content.terms.size()) == grad.count, "a sum is miscounted");
      for (const Term& term : content.terms) {
        Expect(placement_.node_of[term.worker] == node, "a gradient of another node");
      }
    }
  }

  void CheckTerm(const Term& term, int64_t version) {
    const int64_t staleness = version - base_[{term.worker, term.clock}];
    Expect(staleness >= 0, "a gradient is younger than its weights");
    const bool bound = run_.options.late != Late::kKeep && run_.options.pull_timeout == 0;
    Expect(!bound || staleness <= bound_,
           fmt::format("staleness {} with bound {}", staleness, bound_));
    const double expected = 1 / std::max(1.0, static_cast<double>(staleness));
    const bool exact = run_.options.modulate == Modulate::kExact && bound;
    Expect(!exact || term.factor == expected,
           fmt::format("staleness {}, and factor {}", staleness, term.factor));
    Expect(run_.options.modulate != Modulate::kOff || term.factor == 1, "a factor, though off");
    Expect(term.factor > 0 && term.factor <= 1, "a factor above 1");
  }

  // One gradient of each worker, of the newest weights, in worker order.
  void CheckLockstep(const Content& sum, int64_t version) {
    std::vector<int> workers;
    for (const Term& term : sum.terms) {
      workers.push_back(term.worker);
      Expect(base_[{term.worker, term.clock}] == version, "an old gradient in lockstep");
    }
    const bool all = static_cast<int>(workers.size()) == placement_.workers;
    // The run ends between two steps of all: what is left is less.
    Expect(all || submitted_ == run_.scenario.steps, "a lockstep update without some worker");
    std::vector<int> in_order = workers;
    std::stable_sort(in_order.begin(), in_order.end(), [this](int a, int b) {
      return std::pair(placement_.node_of[a], a) < std::pair(placement_.node_of[b], b);
    });
    Expect(workers == in_order, "a lockstep sum out of order");
  }

  const Case run_;
  const Placement placement_;
  const int64_t bound_;
  std::vector<int64_t> versions_;  // by server
  std::vector<int64_t> known_;     // by node
  std::vector<int> untaken_;       // by worker
  std::vector<int64_t> last_base_;
  std::map<int, int64_t> newest_;           // by worker: version that has reached it
  std::map<int, std::set<int64_t>> asked_;  // by node: rounds
  std::map<GradientId, int64_t> base_;
  std::map<int64_t, std::set<GradientId>> by_version_;
  std::set<GradientId> applied_;
  int64_t submitted_ = 0;
};

Case CaseOf(uint64_t seed) {
  static constexpr const char* kModulate[] = {"exact", "mean", "off"};
  static constexpr const char* kLate[] = {"wait", "drop", "keep"};
  Draws draws(seed);
  Case run;
  world::Scenario& scenario = run.scenario;
  InhadOptions& options = run.options;
  const int nodes = static_cast<int>(draws.Between(1, 4));
  for (int node = 0; node < nodes; ++node) {
    for (int64_t w = draws.Between(1, 3); w > 0; --w) scenario.node_of.push_back(node);
  }
  scenario.workers = static_cast<int>(scenario.node_of.size());
  scenario.steps = scenario.workers * draws.Between(2, 12);
  scenario.rest_every = draws.Coin() ? 0 : draws.Between(scenario.workers, scenario.steps);
  run.servers = static_cast<int>(draws.Between(1, 3));
  const int64_t n = draws.Between(1, scenario.workers + 1);
  options.n = std::min<int64_t>(n, scenario.workers);
  options.modulate = static_cast<Modulate>(draws.Between(0, 2));
  options.late = static_cast<Late>(draws.Between(0, 2));
  options.s_max = draws.Coin() ? 0 : draws.Between(1, 4);
  options.lockstep = draws.Between(0, 3) == 0;
  options.broadcast_all = draws.Coin();
  options.pipelined = draws.Coin();
  options.in_interval = draws.Coin() ? 0 : draws.Between(1, 3) * 1000;
  options.pull_timeout = draws.Between(0, 3) == 0 ? 4000 : 0;
  scenario.strategy = fmt::format(
      "{{name: inhad, servers: {}, n: {}, modulate: {}, late: {}, s_max: {}, lockstep: {}, "
      "broadcast: {}, pipelined: {}, in_interval: {}, pull_timeout: {}}}",
      run.servers, n, kModulate[static_cast<int>(options.modulate)],
      kLate[static_cast<int>(options.late)], options.s_max, options.lockstep,
      options.broadcast_all ? "all" : "pulled", options.pipelined,
      static_cast<double>(options.in_interval) * 1e-6,
      static_cast<double>(options.pull_timeout) * 1e-9);
  return run;
}

using Checks = world::Histories<Case, InhadRules, CaseOf>;

TEST(InhadHistories, KeepTheRules) { Checks::KeepTheRules(); }

TEST(InhadHistories, GoOnAsBeforeFromSavedState) { Checks::GoOnAsBeforeFromSavedState(); }

TEST(InhadPlantedBug, ALostSumIsFound) {
  const std::string verdict = Checks::FirstFailure([](World& world) {
    world.loses = [lost = 0](ActorId, ActorId, const Message& message) mutable {
      return message.kind == Grad::kKind && ++lost == 3;
    };
  });
  EXPECT_NE(verdict, "");
}

TEST(InhadPlantedBug, ALostUpdateIsFound) {
  const std::string verdict = Checks::FirstFailure([](World& world) {
    world.loses_update = [lost = 0](ActorId, const Update&) mutable { return ++lost == 2; };
  });
  EXPECT_NE(verdict, "");
}

// A bound that the actors keep more loosely than the rules.
TEST(InhadPlantedBug, ABoundOffByOneIsFound) {
  std::string verdict;
  for (uint64_t seed = 0; seed < 2000 && verdict.empty(); ++seed) {
    Case run = CaseOf(seed);
    if (run.options.s_max < 2 || run.options.late != Late::kWait) continue;
    --run.options.s_max;
    verdict = Checks::WorldOf(run, seed).Run();
  }
  EXPECT_NE(verdict.find("staleness"), std::string::npos) << verdict;
}

}  // namespace
}  // namespace dtrain::inhad
