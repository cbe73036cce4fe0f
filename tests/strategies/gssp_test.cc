// The rules of GSSP (gssp.md 8), held against thousands of random histories; and its grouping.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "framework/strategies/gssp/grouping.h"
#include "framework/strategies/gssp/messages.h"
#include "framework/strategies/gssp/options.h"
#include "tests/strategies/effect_writer.h"
#include "tests/strategies/histories.h"
#include "tests/strategies/strategies.h"
#include "tests/strategies/world.h"

namespace dtrain::gssp {
namespace {

using world::Content;
using world::Parts;
using world::Term;
using world::World;

struct Case {
  world::Scenario scenario;
  GsspOptions options;
  bool compresses = false;
};

using GradientId = std::pair<int, int64_t>;  // worker and clock

class GsspRules : public world::Rules {
 public:
  GsspRules(const Case& run, const Placement& placement)
      : run_(run),
        placement_(placement),
        applied_(placement.servers),
        asked_(placement.workers, false),
        pushed_(placement.workers, 0),
        server_of_(placement.workers, -1) {}

  void Started(ActorId, Term, const Parts& weights) override {
    Expect(weights.size() == 1, "a worker without all of the weights");
  }

  void Sent(ActorId from, ActorId to, const Message& message, const Parts& parts) override {
    if (message.kind == Push::kKind) {
      Expect(!asked_[from], fmt::format("worker {} pushes before it has weights", from));
      asked_[from] = true;
      ++submitted_;
      const int server = placement_.ServerOf(to);
      Expect(server_of_[from] < 0 || server_of_[from] == server,
             fmt::format("worker {} of group {} pushes to {}", from, server_of_[from], server));
      server_of_[from] = server;
    } else if (message.kind == Weights::kKind) {
      Expect(asked_[to], fmt::format("worker {} gets weights unasked", to));
      asked_[to] = false;
      ++answered_;
      CheckLead(to);
    } else if (message.kind == Exchange::kKind && Gradients()) {
      const auto exchange = Unpack<Exchange>(message);
      Expect(
          run_.compresses || static_cast<int64_t>(parts.at(0).terms.size()) == exchange.gradients,
          "an exchange is miscounted");
    } else if (message.kind == Flush::kKind) {
      ++flushed_;
    } else if (message.kind == Regroup::kKind) {
      CheckGroups(Unpack<Regroup>(message).server_of);
      regrouped_ = true;
    }
  }

  void Reached(ActorId to, ActorId from, const Message& message, const Parts&) override {
    if (message.kind == Push::kKind) ++pushed_[from];
    if (message.kind == Regroup::kKind && placement_.IsWorker(to)) {
      server_of_[to] = static_cast<int>(Unpack<Regroup>(message).server_of[to]);
    }
  }

  void Applied(ActorId actor, int, const Content& sum, const Update& update) override {
    std::set<GradientId>& applied = applied_[placement_.ServerOf(actor)];
    const auto workers = static_cast<double>(placement_.workers);
    for (const Term& term : sum.terms) {
      Expect(applied.insert({term.worker, term.clock}).second,
             fmt::format("server {} applies gradient {} of worker {} twice",
                         placement_.ServerOf(actor), term.clock, term.worker));
      const double weight = term.factor * update.gradient_factor * update.lr_factor;
      Expect(!Gradients() || std::abs(weight * workers - 1) < 1e-12,
             fmt::format("a gradient counts {} with {} workers", weight, workers));
    }
    Expect(!run_.options.scale_gradient || update.lr_factor == 1, "the rate is scaled");
  }

  void Finished(const ProtocolReport& report) override {
    Expect(report.gradients() == submitted_, "a gradient has no staleness");
    // A residual goes to every server.
    Expect(report.up_transfers == submitted_ + flushed_, "pushes are miscounted");
    Expect(report.down_transfers == answered_, "answers are miscounted");
    if (!Gradients()) return;
    std::set<int> active(last_groups_.begin(), last_groups_.end());
    for (int worker = 0; !regrouped_ && worker < placement_.workers; ++worker) {
      active.insert(FirstGroup(worker));
    }
    for (const int server : active) {
      Expect(static_cast<int64_t>(applied_[server].size()) == submitted_,
             fmt::format("server {} has applied {} of {}", server, applied_[server].size(),
                         submitted_));
    }
  }

 private:
  bool Gradients() const { return run_.options.between == Between::kGradients; }
  int FirstGroup(int worker) const {
    if (!run_.options.group_of.empty()) return static_cast<int>(run_.options.group_of[worker]);
    const int groups =
        run_.options.groups > 0 ? static_cast<int>(run_.options.groups) : placement_.servers;
    return worker * groups / placement_.workers;
  }

  // Among those of a group that have not been regrouped.
  void CheckLead(int worker) {
    if (regrouped_ || run_.options.inside == Inside::kBsp || server_of_[worker] < 0) return;
    int64_t least = pushed_[worker];
    for (int other = 0; other < placement_.workers; ++other) {
      if (FirstGroup(other) == FirstGroup(worker)) least = std::min(least, pushed_[other]);
    }
    Expect(pushed_[worker] - least <= run_.options.bound,
           fmt::format("worker {} leads its group by {}", worker, pushed_[worker] - least));
  }

  void CheckGroups(const std::vector<int64_t>& server_of) {
    const int groups = static_cast<int>(*std::max_element(server_of.begin(), server_of.end())) + 1;
    Expect(groups <= placement_.servers, "more groups than servers");
    Expect(run_.options.groups == 0 || groups == run_.options.groups, "another number of groups");
    for (int group = 0; group < groups; ++group) {
      const auto members = std::count(server_of.begin(), server_of.end(), group);
      Expect(members > 0, fmt::format("group {} has nobody", group));
      Expect(members > 1 || placement_.workers < 2 * groups,
             fmt::format("group {} has one worker", group));
    }
    last_groups_.assign(server_of.begin(), server_of.end());
  }

  const Case run_;
  const Placement placement_;
  std::vector<std::set<GradientId>> applied_;  // by server
  std::vector<bool> asked_;                    // by worker
  std::vector<int64_t> pushed_;                // by worker: that have reached a server
  std::vector<int> server_of_;
  std::vector<int> last_groups_;
  bool regrouped_ = false;
  int64_t submitted_ = 0;
  int64_t flushed_ = 0;
  int64_t answered_ = 0;
};

// Groups of the start, none of them empty.
std::vector<int64_t> GroupsOf(Draws& draws, int workers, int64_t servers, int64_t groups) {
  if (groups == 0) groups = draws.Between(1, servers);
  std::vector<int64_t> group_of;
  for (int worker = 0; worker < workers; ++worker) {
    group_of.push_back(worker < groups ? groups - 1 - worker : draws.Between(0, groups - 1));
  }
  return group_of;
}

// Without the flush at the end some gradients would be in residuals still.
Case CaseOf(uint64_t seed) {
  Draws draws(seed);
  Case run;
  world::Scenario& scenario = run.scenario;
  GsspOptions& options = run.options;
  scenario.workers = static_cast<int>(draws.Between(1, 8));
  scenario.steps = scenario.workers * draws.Between(2, 20);
  scenario.rest_every = draws.Coin() ? 0 : draws.Between(scenario.workers, scenario.steps);
  const int64_t servers = draws.Between(1, scenario.workers);
  options.bound = draws.Between(0, 4);
  options.inside = draws.Between(0, 2) == 0 ? Inside::kBsp : Inside::kSsp;
  options.between = draws.Between(0, 3) == 0 ? Between::kAveraging : Between::kGradients;
  options.scale_gradient = draws.Coin();
  options.exchange_every = draws.Coin() ? 0 : draws.Between(1, 6);
  options.measured = draws.Coin();
  options.equal_size = draws.Coin();
  options.groups = draws.Coin() ? 0 : draws.Between(1, servers);
  if (draws.Between(0, 3) == 0)
    options.group_of = GroupsOf(draws, scenario.workers, servers, options.groups);
  run.compresses = draws.Coin() && options.between == Between::kGradients;
  if (run.compresses) {
    scenario.compress = fmt::format("{{name: gdtopk, flush: {}}}", draws.Coin() ? "epoch" : "none");
  }
  scenario.strategy = fmt::format(
      "{{name: gssp, servers: {}, staleness: {}, inside: {}, exchange: {}, scale: {}, "
      "exchange_every: {}, grouping: {}, equal_size: {}, groups: {}, group_of: [{}]}}",
      servers, options.bound, options.inside == Inside::kBsp ? "bsp" : "ssp",
      options.between == Between::kGradients ? "gradients" : "averaging",
      options.scale_gradient ? "gradient" : "share", options.exchange_every,
      options.measured ? "measured" : "static", options.equal_size,
      options.groups == 0 ? "auto" : std::to_string(options.groups),
      fmt::join(options.group_of, ", "));
  return run;
}

using Checks = world::Histories<Case, GsspRules, CaseOf>;

TEST(GsspHistories, KeepTheRules) { Checks::KeepTheRules(); }

TEST(GsspHistories, GoOnAsBeforeFromSavedState) { Checks::GoOnAsBeforeFromSavedState(); }

TEST(GsspPlantedBug, ALostExchangeIsFound) {
  const std::string verdict = Checks::FirstFailure([](World& world) {
    world.loses = [lost = 0](ActorId, ActorId, const Message& message) mutable {
      return message.kind == Exchange::kKind && ++lost == 2;
    };
  });
  EXPECT_NE(verdict.find("has applied"), std::string::npos) << verdict;
}

TEST(GsspPlantedBug, ALostUpdateIsFound) {
  const std::string verdict = Checks::FirstFailure([](World& world) {
    world.loses_update = [lost = 0](ActorId, const Update&) mutable { return ++lost == 3; };
  });
  EXPECT_NE(verdict.find("has applied"), std::string::npos) << verdict;
}

// The actors allow one step more than the rules do.
TEST(GsspPlantedBug, ABoundOffByOneIsFound) {
  std::string verdict;
  for (uint64_t seed = 0; seed < 2000 && verdict.empty(); ++seed) {
    Case run = CaseOf(seed);
    if (run.options.bound < 1 || run.options.inside == Inside::kBsp) continue;
    --run.options.bound;
    verdict = Checks::WorldOf(run, seed).Run();
  }
  EXPECT_NE(verdict.find("leads its group"), std::string::npos) << verdict;
}

// ------------------------------------------------------------------ density

// Compress moves everything then, and the worker is that of a dense run (gssp.md 8.8).
TEST(GsspDensity, OfOneSendsAllThatWasGathered) {
  const auto strategy = MakeStrategy("{name: gssp, servers: 1}");
  const ActorSetup setup = SetupFor(*strategy, 1, 10, "{name: gdtopk}");
  const auto worker = std::move(MakeActors(*strategy, setup)[0]);
  std::string text;
  EffectWriter effects(setup.placement, 0, *worker, text, [](ActorId, const Message&) {});
  worker->OnMessage(setup.placement.CoordinatorId(), Pack(Density{1}), effects);
  worker->OnBegin(effects);
  worker->OnEnd({.samples = 4}, effects);
  EXPECT_EQ(text,
            "  w0: start step\n"
            "  w0: residual += gradient\n"
            "  w0: compress out from residual: density 1\n"
            "  w0 > s0 push: samples 4 + out [0, 10)\n"
            "  w0: clear out\n"
            "  w0: end step: samples 4, loss 0\n");
}

// ------------------------------------------------------------------ grouping

double CostOf(const std::vector<double>& times, const std::vector<int>& group_of) {
  const int groups = *std::max_element(group_of.begin(), group_of.end()) + 1;
  double cost = 0;
  for (int group = 0; group < groups; ++group) {
    double sum = 0, squares = 0, count = 0;
    for (size_t w = 0; w < times.size(); ++w) {
      if (group_of[w] != group) continue;
      sum += std::log(times[w]);
      squares += std::log(times[w]) * std::log(times[w]);
      ++count;
    }
    cost += squares - sum * sum / count;
  }
  return cost;
}

// Of all ways to put the workers into groups, whether neighbours in speed or not.
double LeastCost(const std::vector<double>& times, int groups, int least) {
  const auto workers = times.size();
  double best = 1e300;
  std::vector<int> group_of(workers, 0);
  for (int64_t code = 0; code < std::llround(std::pow(groups, workers)); ++code) {
    int64_t rest = code;
    std::vector<int> count(groups, 0);
    for (size_t w = 0; w < workers; ++w, rest /= groups) {
      group_of[w] = static_cast<int>(rest % groups);
      ++count[group_of[w]];
    }
    if (*std::min_element(count.begin(), count.end()) >= least) {
      best = std::min(best, CostOf(times, group_of));
    }
  }
  return best;
}

TEST(Grouping, IsTheBestOfAllPartitions) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Draws draws(seed);
    std::vector<double> times(draws.Between(2, 7));
    for (double& time : times) time = static_cast<double>(draws.Between(1, 40));
    const int groups = static_cast<int>(draws.Between(1, std::min<int64_t>(3, times.size())));
    const int least = static_cast<int>(times.size()) >= 2 * groups ? 2 : 1;
    const std::vector<int> group_of = GroupBySpeed(times, {.groups = groups});
    EXPECT_NEAR(CostOf(times, group_of), LeastCost(times, groups, least), 1e-9)
        << fmt::format("{} in {} groups: {}", times, groups, group_of);
  }
}

TEST(Grouping, FindsFourSpeedsAndTakesNoMoreGroupsThanItNeeds) {
  const std::vector<double> times = {1, 2, 3, 4, 1.05, 2.1, 2.9, 4.2};
  const std::vector<int> expected = {0, 1, 2, 3, 0, 1, 2, 3};
  EXPECT_EQ(GroupBySpeed(times, {.groups = 4}), expected);
  EXPECT_EQ(GroupBySpeed(times, {.groups_max = 4}), expected);
  EXPECT_EQ(GroupBySpeed({1, 1.1, 1.2, 1.05}, {.groups_max = 4}), (std::vector<int>{0, 0, 0, 0}));
  EXPECT_EQ(GroupBySpeed({1, 1, 2, 2}, {.groups_max = 4}), (std::vector<int>{0, 0, 1, 1}));
}

TEST(Grouping, OfEqualSizeCutsTheOrderOfSpeeds) {
  EXPECT_EQ(GroupBySpeed({9, 1, 1, 1, 2, 8}, {.groups = 3, .equal_size = true}),
            (std::vector<int>{2, 0, 0, 1, 1, 2}));
}

TEST(Grouping, SeesWhoLiesNearerToAnotherGroup) {
  EXPECT_EQ(Misplaced({1, 1, 4, 4}, {0, 0, 1, 1}), (std::vector<bool>{false, false, false, false}));
  EXPECT_EQ(Misplaced({1, 3.9, 4, 4, 1}, {0, 0, 1, 1, 0}),
            (std::vector<bool>{false, true, false, false, false}));
}

}  // namespace
}  // namespace dtrain::gssp
