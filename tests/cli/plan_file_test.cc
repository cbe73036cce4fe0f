// Tests `plan: FILE` in simulations: the effect of its buckets, and the errors of a file that does not fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/core/execution_plan.h"
#include "framework/core/model_profile.h"
#include "tests/cli/command_outcome.h"
#include "tests/data/temp_folder.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kLayer = 1'000'000;

class PlanFile : public ::testing::Test {
 protected:
  // Four layers whose sums are hidden by the backward pass, so that merging them gains nothing.
  CommandOutcome Simulate(const std::vector<std::string>& settings) {
    ModelProfile profile{.model = "four", .device = "cpu", .batch = 8};
    for (const char* name : {"a", "b", "c", "d"}) {
      profile.layers.push_back({name, kLayer, 4 * kLayer, 0.05, 0.1, 0});
    }
    std::vector<std::string> words = {"simulate", "--json", "--profile",
                                      folder_.Write("profile.json", ToJson(profile))};
    for (const char* setting : {"cluster.workers=4", "batch=32", "max_steps=3", "collective=ring",
                                "strategy.name=mgwfbp", "cluster.network.latency_us=1"}) {
      words.insert(words.end(), {"--set", setting});
    }
    for (const std::string& setting : settings) words.insert(words.end(), {"--set", setting});
    return RunCommand(words);
  }
  static int MessagesOf(const CommandOutcome& outcome) {
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out)["communication"]["messages"];
  }
  std::string Write(const std::vector<Range>& buckets, const std::string& measured_for) {
    ExecutionPlan plan{.isa = "avx2", .workers = 4, .collective = "ring"};
    plan.buckets = buckets;
    plan.measured_for = measured_for;
    return "plan=" + folder_.Write("plan.json", ToJson(plan)).string();
  }

  const TempFolder folder_;
  const std::vector<Range> whole_ = {{0, 4 * kLayer}},
                           halves_ = {{0, 2 * kLayer}, {2 * kLayer, 4 * kLayer}};
};

TEST_F(PlanFile, ASimulationSendsItsBuckets) {
  const int planned = MessagesOf(Simulate({}));
  const int halves = MessagesOf(Simulate({Write(halves_, "mgwfbp, 4 workers, ring")}));
  const int whole = MessagesOf(Simulate({Write(whole_, "mgwfbp, 4 workers, ring")}));
  EXPECT_LT(whole, halves);
  EXPECT_LT(halves, planned);
  EXPECT_EQ(MessagesOf(Simulate({"strategy.name=single"})), whole);
}

TEST_F(PlanFile, AutoTakesThoseOfASchedule) {
  const int whole = MessagesOf(Simulate({"strategy.name=single"}));
  const int halves = MessagesOf(Simulate({Write(halves_, "mgwfbp, 4 workers, ring")}));
  const std::string by_auto = "strategy.name=auto";
  EXPECT_EQ(MessagesOf(Simulate({by_auto, Write(halves_, "mgwfbp, 4 workers, ring")})), halves);
  EXPECT_EQ(MessagesOf(Simulate({by_auto, Write(whole_, "")})), whole);
  const CommandOutcome other = Simulate({by_auto, Write(halves_, "")});
  EXPECT_THAT(other.err, HasSubstr("has no buckets for this run (auto, 4 workers, ring)"));
  EXPECT_GT(MessagesOf(other), halves);
}

TEST_F(PlanFile, OneThatDoesNotFitIsSaidAndPlannedAnew) {
  const int planned = MessagesOf(Simulate({}));
  const CommandOutcome other = Simulate({Write(whole_, "mgwfbp, 8 workers, ring")});
  EXPECT_THAT(other.err,
              AllOf(HasSubstr("plan.json has no buckets for this run (mgwfbp, 4 workers, ring)"),
                    HasSubstr("planned anew")));
  EXPECT_EQ(MessagesOf(other), planned);
  // The buckets are those of a model with as many parameters in other layers, and of one with more.
  for (const std::vector<Range>& buckets :
       {std::vector<Range>{{0, kLayer / 2}, {kLayer / 2, 4 * kLayer}},
        std::vector<Range>{{0, kLayer}, {2 * kLayer, 4 * kLayer}},
        std::vector<Range>{{0, 5 * kLayer}}}) {
    const CommandOutcome outcome = Simulate({Write(buckets, "mgwfbp, 4 workers, ring")});
    EXPECT_THAT(outcome.err, HasSubstr("has no buckets for this run"));
    EXPECT_EQ(MessagesOf(outcome), planned);
  }
  EXPECT_THAT(Simulate({Write(halves_, "mgwfbp, 4 workers, ring")}).err, Not(HasSubstr("buckets")));
}

// This holds even if no schedule uses its buckets.
TEST_F(PlanFile, OneThatIsNoneIsRefused) {
  const std::string file = "plan=" + folder_.Write("no.json", "no plan").string();
  for (const char* strategy :
       {"strategy.name=mgwfbp", "strategy.name=wfbp", "strategy.name=ps_bsp"}) {
    const CommandOutcome outcome = Simulate({strategy, file});
    EXPECT_EQ(outcome.code, 2) << strategy;
    EXPECT_THAT(outcome.err, HasSubstr("no.json")) << strategy;
  }
}

TEST_F(PlanFile, CheckReadsIt) {
  const auto check = [&](const std::string& text) {
    const std::string plan = folder_.Write("some.json", text).string();
    return RunCommand({"check", "--config", DTRAIN_SOURCE_DIR "/configs/runs/quickstart.yaml",
                       "--set", "plan=" + plan});
  };
  const CommandOutcome bad = check("no plan");
  EXPECT_EQ(bad.code, 2);
  EXPECT_THAT(bad.err, HasSubstr("some.json: not JSON"));
  EXPECT_EQ(check(ToJson(ExecutionPlan{.isa = "avx2"})).code, 0);
}

}  // namespace
}  // namespace dtrain
