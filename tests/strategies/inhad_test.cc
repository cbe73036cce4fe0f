// Checks the rules of InHAD (inhad.md 7) on thousands of random histories.
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

constexpr Nanos kLong = 100'000;  // longer than any answer takes

using GradientId = std::pair<int, int64_t>;  // worker and clock

class InhadRules : public world::Rules {
 public:
  InhadRules(const Case& run, const Placement& placement)
      : run_(run),
        placement_(placement),
        bound_(run.options.staleness_bound()),
        versions_(placement.servers, 0),
        known_(placement.nodes(), 0),
        handed_in_(placement.nodes(), 0),
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
      for (const Term& term : parts.begin()->second.terms) {
        Expect(submitted_.insert({term.worker, term.clock}).second, "submitted twice");
      }
    } else if (message.kind == Pull::kKind) {
      asked_[placement_.NumberOf(to)].insert(Unpack<Pull>(message).round);
      Expect(run_.options.pipelined || !Receives(to), "a node is pulled while it receives weights");
    } else if (message.kind == Weights::kKind && !placement_.IsWorker(to)) {
      int64_t& sent = sent_[{from, to}];
      const int64_t version = Unpack<Weights>(message).version;
      Expect(version >= sent, "a node is sent older weights");
      Expect(run_.options.pipelined || version == sent || sent <= has_[to],
             "weights queue up behind others");
      sent = version;
    } else if (message.kind == GiveUp::kKind) {
      given_up_.insert(static_cast<int>(Unpack<GiveUp>(message).node));
    } else if (message.kind == Grad::kKind) {
      CheckGrad(placement_.NumberOf(from), Unpack<Grad>(message), parts);
    } else {
      Expect(parts.empty() || message.kind == Weights::kKind, "a vector travels unasked");
    }
  }

  void Reached(ActorId to, ActorId from, const Message& message, const Parts&) override {
    if (message.kind == Taken::kKind) --untaken_[to];
    if (message.kind == Submit::kKind) ++handed_in_[placement_.NumberOf(to)];
    if (placement_.IsWorker(to) && message.kind == Weights::kKind) {
      newest_[to] = Unpack<Weights>(message).version;
    }
    if (message.kind == Have::kKind) has_[from] = Unpack<Have>(message).version;
    if (message.kind != In::kKind) return;
    int64_t& known = known_[placement_.NumberOf(from)];
    const int64_t submitted = Unpack<In>(message).submitted;
    Expect(submitted >= known, "an iteration number goes back");
    Expect(submitted <= handed_in_[placement_.NumberOf(from)], "a node says more than it has had");
    known = submitted;
  }

  void Applied(ActorId server, int shard, const Content& sum, const Update& update) override {
    Expect(placement_.ServerOf(server) == shard, "a server updates another's shard");
    const int64_t version = versions_[shard]++;
    const auto count = static_cast<int64_t>(sum.terms.size());
    Expect(count > 0, "an update of nothing");
    // The last update may have fewer gradients, and so may one after gradients were dropped or lost with a node.
    const bool may_lack = ending_ || run_.options.late == Late::kDrop || run_.scenario.may_fail;
    Expect(may_lack || count >= run_.options.GradientsOfUpdate(run_.scenario.workers),
           fmt::format("an update of {} gradients, n {}", count, run_.options.n));
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
    if (together && !run_.scenario.may_fail) CheckLockstep(sum, version);
  }

  void Quiescent(const QuiescentState& quiescent) override { ending_ = quiescent.last; }

  void Died(ActorId actor) override { dead_.insert(actor); }

  void Finished(const ProtocolReport& report) override {
    Expect(*std::min_element(versions_.begin(), versions_.end()) == updates(),
           "a server is behind at the end");
    const auto applied = static_cast<int64_t>(applied_.size());
    const auto submitted = static_cast<int64_t>(submitted_.size());
    Expect(applied + report.Total("dropped") + report.Total("lost") == submitted,
           fmt::format("{} applied, {} dropped and {} lost of {}", applied, report.Total("dropped"),
                       report.Total("lost"), submitted));
    CheckLost(report);
    Expect(run_.options.late == Late::kDrop || report.Total("dropped") == 0,
           "a gradient is dropped");
    Expect(report.gradients() == applied, "a gradient has no staleness");
    const bool bound = run_.options.late != Late::kKeep;
    Expect(!bound || MayMix() || report.Total("merged") == 0, "bases are mixed");
    int64_t sum = 0;
    for (const auto& [version, gradients] : by_version_) {
      for (const GradientId& gradient : gradients) sum += version - base_[gradient];
    }
    Expect(std::llround(report.staleness_mean() * static_cast<double>(applied)) == sum,
           "staleness is miscounted");
    Expect(report.Total("rounds") == updates(), "rounds are miscounted");
  }

 private:
  int64_t updates() const { return versions_[0]; }

  bool Receives(ActorId node) const {
    return std::any_of(sent_.begin(), sent_.end(), [&](const auto& sent) {
      const auto has = has_.find(node);
      return sent.first.second == node && sent.second > (has == has_.end() ? 0 : has->second);
    });
  }

  // A node that is given up while it lives goes on adding until it gets the message.  In lockstep a dead worker's last
  // gradient may count in place of that of a late worker, which then pushes two.
  bool MayMix() const {
    if (!run_.scenario.may_fail) return false;
    return run_.options.pull_timeout < kLong || (run_.options.lockstep && run_.options.n == 1);
  }

  // Gradients are lost only with their node, and a node that answers in time is not given up.
  void CheckLost(const ProtocolReport& report) {
    Expect(run_.scenario.may_fail || report.Total("lost") + report.Total("ignored") == 0,
           "somebody is given up");
    for (const int node : given_up_) {
      Expect(run_.options.pull_timeout < kLong || dead_.contains(placement_.NodeId(node)),
             fmt::format("node {} lives, and is given up", node));
    }
    if (report.Total("dropped") > 0) return;
    for (const GradientId& gradient : submitted_) {
      Expect(applied_.contains(gradient) || given_up_.contains(placement_.node_of[gradient.first]),
             fmt::format("gradient {} of worker {} is lost", gradient.second, gradient.first));
    }
  }

  // A node's message has the content that was requested, and describes it correctly.
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
    const bool bound = run_.options.late != Late::kKeep;
    Expect(!bound || staleness <= bound_,
           fmt::format("staleness {} with bound {}", staleness, bound_));
    const double expected = 1 / std::max(1.0, static_cast<double>(staleness));
    const bool exact = run_.options.modulate == Modulate::kExact && bound && !MayMix();
    Expect(!exact || term.factor == expected,
           fmt::format("staleness {}, and factor {}", staleness, term.factor));
    Expect(run_.options.modulate != Modulate::kOff || term.factor == 1, "a factor, though off");
    Expect(term.factor > 0 && term.factor <= 1, "a factor above 1");
  }

  // The sum has one gradient of each worker, computed from the newest weights, in worker order.
  void CheckLockstep(const Content& sum, int64_t version) {
    std::vector<int> workers;
    for (const Term& term : sum.terms) {
      workers.push_back(term.worker);
      Expect(base_[{term.worker, term.clock}] == version, "an old gradient in lockstep");
    }
    const bool all = static_cast<int>(workers.size()) == placement_.workers;
    // A run may end between two steps of all workers: the last sum has fewer gradients.
    Expect(all || static_cast<int64_t>(submitted_.size()) == run_.scenario.steps,
           "a lockstep update without some worker");
    std::vector<int> in_order = workers;
    std::stable_sort(in_order.begin(), in_order.end(), [this](int a, int b) {
      return std::pair(placement_.node_of[a], a) < std::pair(placement_.node_of[b], b);
    });
    Expect(workers == in_order, "a lockstep sum out of order");
  }

  const Case run_;
  const Placement placement_;
  const int64_t bound_;
  std::vector<int64_t> versions_;   // by server
  std::vector<int64_t> known_;      // by node
  std::vector<int64_t> handed_in_;  // by node: gradients that have arrived there
  bool ending_ = false;             // the remaining gradients are pulled
  std::vector<int> untaken_;        // by worker: gradients that no update has used
  std::vector<int64_t> last_base_;
  std::map<int, int64_t> newest_;           // by worker: newest version that has arrived there
  std::map<int, std::set<int64_t>> asked_;  // by node: rounds
  // By server and node: newest version of the weights that were sent.  By node: newest version that the Scheduler knows
  // it to have.
  std::map<std::pair<ActorId, ActorId>, int64_t> sent_;
  std::map<ActorId, int64_t> has_;
  std::map<GradientId, int64_t> base_;
  std::map<int64_t, std::set<GradientId>> by_version_;
  std::set<GradientId> applied_;
  std::set<GradientId> submitted_;
  std::set<int> given_up_;  // nodes
  std::set<ActorId> dead_;
};

// Sets the config section that describes `run`, with `n` as in a config.
void Name(int64_t n, Case& run) {
  static constexpr const char* kModulate[] = {"exact", "mean", "off"};
  static constexpr const char* kLate[] = {"wait", "drop", "keep"};
  InhadOptions& options = run.options;
  options.n = std::min<int64_t>(n, run.scenario.workers);
  run.scenario.strategy = fmt::format(
      "{{name: inhad, servers: {}, n: {}, modulate: {}, late: {}, s_max: {}, lockstep: {}, "
      "broadcast: {}, pipelined: {}, in_interval: {}, pull_timeout: {}}}",
      run.servers, n, kModulate[static_cast<int>(options.modulate)],
      kLate[static_cast<int>(options.late)], options.s_max, options.lockstep,
      options.broadcast_all ? "all" : "pulled", options.pipelined,
      static_cast<double>(options.in_interval) * 1e-6,
      static_cast<double>(options.pull_timeout) * 1e-9);
}

Case CaseOf(uint64_t seed) {
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
  scenario.boundary_every = draws.Coin() ? 0 : draws.Between(scenario.workers, scenario.steps);
  run.servers = static_cast<int>(draws.Between(1, 3));
  const int64_t n = draws.Between(1, scenario.workers + 1);
  options.modulate = static_cast<Modulate>(draws.Between(0, 2));
  options.late = static_cast<Late>(draws.Between(0, 2));
  options.s_max = draws.Coin() ? 0 : draws.Between(1, 4);
  options.lockstep = draws.Between(0, 3) == 0;
  options.broadcast_all = draws.Coin();
  options.pipelined = draws.Coin();
  options.in_interval = draws.Coin() ? 0 : draws.Between(1, 3) * 1000;
  Name(n, run);
  return run;
}

// Nodes and workers die at any time; now and then a living node is given up.
Case MayFailCaseOf(uint64_t seed) {
  Case run = CaseOf(seed);
  world::Scenario& scenario = run.scenario;
  Draws draws(seed + 1'000'000);
  scenario.may_fail = true;
  const ActorId first_node = scenario.workers + run.servers;
  const int nodes = scenario.node_of.back() + 1;
  std::set<int> left;
  for (int node = 0; node < nodes; ++node) left.insert(node);
  for (int64_t deaths = draws.Between(0, 3); deaths > 0; --deaths) {
    world::Death death{.at = draws.Between(0, 400 * scenario.steps)};
    const auto worker = static_cast<ActorId>(draws.Between(0, scenario.workers - 1));
    const int node = scenario.node_of[worker];
    const bool carries = worker == 0 || scenario.node_of[worker - 1] != node;
    if (carries && left.size() == 1) continue;  // at least one survives
    death.actors = {worker};
    if (carries) {
      left.erase(node);
      death.actors.push_back(first_node + node);
      for (ActorId other = worker + 1; other < scenario.workers; ++other) {
        if (scenario.node_of[other] == node) death.actors.push_back(other);
      }
    }
    scenario.deaths.push_back(death);
  }
  std::sort(scenario.deaths.begin(), scenario.deaths.end(),
            [](const auto& a, const auto& b) { return a.at < b.at; });
  // In lockstep the workers of a node that is given up would wait for ever, and they might be the last ones.
  const bool hasty = !run.options.lockstep && draws.Between(0, 2) == 0;
  run.options.pull_timeout = hasty ? 4000 : kLong;
  Name(draws.Between(1, scenario.workers + 1), run);
  return run;
}

using Checks = world::Histories<Case, InhadRules, CaseOf>;

TEST(InhadHistories, KeepTheRules) { Checks::KeepTheRules(); }

TEST(InhadHistories, GoOnAsBeforeFromSavedState) { Checks::GoOnAsBeforeFromSavedState(); }

using MayFailChecks = world::Histories<Case, InhadRules, MayFailCaseOf>;

TEST(InhadDeaths, KeepTheRules) { MayFailChecks::KeepTheRules(); }

TEST(InhadDeaths, GoOnAsBeforeFromSavedState) { MayFailChecks::GoOnAsBeforeFromSavedState(); }

// Many histories lose gradients, and in some a message of a given-up node arrives late.
TEST(InhadDeaths, LoseGradientsNowAndThen) {
  int losses = 0, given_up = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    World world = MayFailChecks::WorldOf(MayFailCaseOf(seed), seed);
    ASSERT_EQ(world.Run(), "");
    losses += world.report().Total("lost") > 0 ? 1 : 0;
    given_up += world.report().Total("ignored") > 0 ? 1 : 0;
  }
  EXPECT_GT(losses, 50);
  EXPECT_GT(given_up, 5);
}

// Returns the verdict of the first history with deaths that breaks a rule.
TEST(InhadPlantedBug, ADeadNodeThatCountsNothingIsFound) {
  const std::string verdict =
      MayFailChecks::FirstFailure([](World& world) { world.the_dead_count = false; });
  EXPECT_NE(verdict.find("lost of"), std::string::npos) << verdict;
}

// A given-up node that does not get the message would have its messages counted again.
TEST(InhadPlantedBug, ALivingNodeThatDoesNotHearItIsGivenUpIsFound) {
  const std::string verdict = MayFailChecks::FirstFailure([](World& world) {
    world.loses = [](ActorId, ActorId, const Message& message) {
      return message.kind == GiveUp::kKind;
    };
  });
  EXPECT_NE(verdict.find("lost of"), std::string::npos) << verdict;
}

TEST(InhadPlantedBug, ALostSumIsFound) {
  const std::string verdict = Checks::FirstFailure([](World& world) {
    world.loses = [lost = 0](ActorId, ActorId, const Message& message) mutable {
      return message.kind == Grad::kKind && ++lost == 3;
    };
  });
  EXPECT_NE(verdict.find("a server is behind at the end"), std::string::npos) << verdict;
}

TEST(InhadPlantedBug, ALostUpdateIsFound) {
  const std::string verdict = Checks::FirstFailure([](World& world) {
    world.loses_update = [lost = 0](ActorId, const Update&) mutable { return ++lost == 2; };
  });
  EXPECT_NE(verdict.find("makes another update"), std::string::npos) << verdict;
}

// The actors allow a larger bound than the rules.
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
