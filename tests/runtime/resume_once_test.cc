// Runs that are interrupted at any of their checkpoints, including the last, and continue there or in another folder:
// each evaluation, byte, message, sample and second is counted once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "framework/checkpoint/rank_checkpoint.h"
#include "framework/checkpoint/weights_file.h"
#include "framework/results/run_so_far.h"
#include "framework/strategies/strategy.h"
#include "tests/runtime/resume_fixture.h"
#include "tests/runtime/rewrite_checkpoint.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using Keys = std::vector<std::string>;

// Later keys replace earlier ones.
Keys Joined(Keys keys, const Keys& more) {
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

// ------------------------------------------------------------------ simulated, for every strategy

class ResumeOnce : public ResumeFixture {
 protected:
  // Checkpoints so frequent that evaluations are between them and at them.
  static Keys Dense() {
    return {"checkpoint.every_steps=5", "checkpoint.every_epochs=0", "evaluate.every_steps=4",
            "evaluate.every_epochs=0", "epochs=1"};
  }
  RunConfig Plain(const std::string& output, const Keys& keys) const {
    return Config(output, Joined(keys, {PlainModel()}));
  }
  // Reads metrics.jsonl without measured times, for comparing real runs.
  std::vector<json> WithoutTimes(const std::string& output) const {
    std::vector<json> lines;
    std::istringstream in(ReadFile(folder_ / output / "metrics.jsonl"));
    for (std::string text; std::getline(in, text);) {
      json line = json::parse(text);
      for (const char* key : {"seconds", "training_seconds", "samples_per_second",
                              "exposed_seconds", "evaluate_seconds", "write_seconds"}) {
        line.erase(key);
      }
      lines.push_back(std::move(line));
    }
    return lines;
  }
  // Returns a real run's summary of the whole run, without measured times.
  static std::string WholeRun(const Summary& summary) {
    json all = json::parse(ToJson(summary));
    for (const char* key : {"seconds", "samples_per_second", "step_seconds", "communication",
                            "workers_detail", "staleness", "protocol", "resumed_step", "plan"}) {
      all.erase(key);
    }
    if (all.contains("target")) all["target"].erase("seconds");
    return all.dump(1);
  }
};

class ResumeOnceOf : public ResumeOnce, public testing::WithParamInterface<std::string> {};

TEST_P(ResumeOnceOf, ASimulationCountsAllOnce) {
  const Keys keys = Joined(Dense(), {"strategy={name: " + GetParam() + "}", "cluster.per_node=2"});
  const Summary whole = Simulate(Config("whole", keys), "none");
  for (const fs::path& newest : Checkpoints("whole")) {
    SCOPED_TRACE(newest.filename().string());
    CopyUpTo("whole", newest, "again");
    ExpectSame(Simulate(Config("again", keys), "auto"), whole);
    ExpectSameMetrics("again", "whole");
    // Resumes once more, from the new end.
    ExpectSame(Simulate(Config("again", keys), "auto"), whole);
    ExpectSameMetrics("again", "whole");
    fs::remove_all(folder_ / "elsewhere");
    ExpectSame(Simulate(Config("elsewhere", keys), newest.string()), whole);
    ExpectSameMetrics("elsewhere", "whole");
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, ResumeOnceOf, testing::ValuesIn([] {
                           std::vector<std::string> names = StrategyRegistry::Names();
                           std::erase(names, "auto");
                           return names;
                         }()),
                         [](const auto& info) { return info.param; });

// Without batch normalisation, whose statistics change the loss at any learning rate.
TEST_F(ResumeOnce, ASimulationThatEndedEarlyCountsAllOnce) {
  for (const char* strategy : {"allreduce", "ps_ssp", "gssp"}) {
    SCOPED_TRACE(strategy);
    fs::remove_all(folder_ / "whole");
    const Keys keys = Joined(Dense(), {fmt::format("strategy={{name: {}}}", strategy),
                                       "solver.lr=1e-12", "stop.patience=2", "epochs=3"});
    const Summary whole = Simulate(Plain("whole", keys), "none");
    EXPECT_LT(whole.epochs, 2);
    for (const fs::path& newest : Checkpoints("whole")) {
      SCOPED_TRACE(newest.filename().string());
      fs::remove_all(folder_ / "elsewhere");
      ExpectSame(Simulate(Plain("elsewhere", keys), newest.string()), whole);
      ExpectSameMetrics("elsewhere", "whole");
    }
  }
}

// Without a part of what a run goes on with, a checkpoint is of a program from before the first release.
TEST_F(ResumeOnce, ACheckpointOfAnEarlyProgramIsRefusedByItsRevision) {
  const Keys keys = Joined(Dense(), {"strategy={name: ps_bsp}"});
  Simulate(Config("whole", keys), "none");
  const fs::path newest = Checkpoints("whole")[0];
  const std::string whole = ReadStoredInfo(newest).so_far;
  const auto without = [&](const char* key) {
    json so_far = json::parse(whole);
    EXPECT_EQ(so_far.erase(key), 1u);
    return so_far.dump();
  };
  const Keys real = Joined(Dense(), {"cluster={}", "cluster.workers=1"});
  for (const std::string& so_far : {std::string(), without("steps"), without("evaluations")}) {
    SCOPED_TRACE(so_far);
    RewriteCheckpoint(newest, [&](CheckpointInfo& info) {
      info.so_far = so_far;
      info.source_revision = "51c9698";
    });
    const auto refusal = AllOf(HasSubstr(newest.filename().string() +
                                         " cannot be resumed: revision 51c9698 of dtrain wrote it"),
                               HasSubstr("start a new run from its weights with --weights"));
    EXPECT_THAT(MessageOf([&] { Simulate(Config("whole", keys), "auto"); }), refusal);
    EXPECT_THAT(MessageOf([&] { Run(Config("real", real), {.resume = newest.string()}); }),
                refusal);
  }
  const Keys short_run = Joined(real, {"max_steps=1"});
  EXPECT_EQ(Run(Config("new", short_run), {.weights = newest.string()}).code, ExitCode::kDone);
}

// Each worker restarts at the average, and virtual time continues.
TEST_F(ResumeOnce, WithOtherWorkersVirtualTimeGoesOn) {
  const Keys keys = {"strategy={name: ps_asp, placement: colocated}", "epochs=2",
                     "cluster.slowdown=[1]"};
  Simulate(Config("whole", keys), "none");
  const std::vector<fs::path> checkpoints = Checkpoints("whole");
  const double before = RunSoFarFrom(ReadStoredInfo(checkpoints.back()).so_far).training_seconds;
  ASSERT_GT(before, 0);
  const Summary again = Simulate(Config("elsewhere", Joined(keys, {"cluster.workers=2"})),
                                 checkpoints.back().string());
  EXPECT_GT(again.seconds, before);
}

// In a folder, and in memory without one.
TEST_F(ResumeOnce, ASimulationTestsItsBestWeightsAsARealRunDoes) {
  const Keys keys = {"cluster={}",
                     "cluster.workers=2",
                     "strategy=allreduce",
                     "data.validation=0.2",
                     "checkpoint.keep_best=true",
                     "solver.lr=0.3",
                     "epochs=6",
                     "tensorboard=true",
                     "stop.patience=3"};
  const Summary real = Run(Config("real", keys)).summary;
  ASSERT_TRUE(real.best && real.test->step) << "the last evaluation was the best";
  const Summary in_folder = Simulate(Config("simulated", keys), "none");
  const Summary in_memory = SimulatedRun(Config("none", keys), std::nullopt, true).Run();
  for (const Summary& simulated : {in_folder, in_memory}) {
    EXPECT_EQ(simulated.best->step, real.best->step);
    EXPECT_EQ(simulated.test->step, real.test->step);
    EXPECT_EQ(simulated.test->loss, real.test->loss);
    EXPECT_EQ(simulated.weights_sha256, real.weights_sha256);
  }
  EXPECT_EQ(ReadStoredInfo(folder_ / "simulated/checkpoints/best.h5").position.step,
            real.best->step);
  EXPECT_FALSE(fs::is_empty(folder_ / "simulated/tensorboard"));
  EXPECT_FALSE(fs::exists(folder_ / "none"));
}

// ------------------------------------------------------------------ real

struct RealCase {
  std::string name;
  Keys keys;
};

TEST_F(ResumeOnce, ARealRunIsEvaluatedOnce) {
  const RealCase cases[] = {
      {"one worker", {"cluster={}", "cluster.workers=1"}},
      {"two workers", {"cluster={}", "cluster.workers=2", "strategy={name: allreduce}"}},
      {"a server", {"cluster={}", "cluster.workers=2", "strategy={name: ps_bsp}"}},
      {"the best is kept",
       {"cluster={}", "cluster.workers=2", "data.validation=0.2", "checkpoint.keep_best=true"}},
      {"patience",
       {"cluster={}", "cluster.workers=2", "data.validation=0.2", "checkpoint.keep_best=true",
        "solver.lr=1e-12", "stop.patience=3"}},
      {"target", {"cluster={}", "cluster.workers=1", "stop.target=0.2"}}};
  for (const RealCase& one : cases) {
    SCOPED_TRACE(one.name);
    fs::remove_all(folder_ / "whole");
    const Keys keys = Joined(Joined(Dense(), {"log_first_steps=100", "epochs=2"}), one.keys);
    const Summary whole = Run(Plain("whole", keys)).summary;
    for (const fs::path& newest : Checkpoints("whole")) {
      SCOPED_TRACE(newest.filename().string());
      CopyUpTo("whole", newest, "again");
      fs::remove(folder_ / "again/summary.json");
      const Summary again = Run(Plain("again", keys), {.resume = "auto"}).summary;
      EXPECT_EQ(WholeRun(again), WholeRun(whole));
      EXPECT_EQ(WithoutTimes("again"), WithoutTimes("whole"));
    }
  }
}

// ------------------------------------------------------------------ real, in another folder

class ResumeElsewhere : public ResumeOnce {
 protected:
  // The learning rate is so small that the first evaluation is the best one.
  static Keys Idle(const Keys& more = {}) {
    return Joined(
        {"cluster={}", "cluster.workers=1", "evaluate.every_steps=2", "evaluate.every_epochs=0",
         "checkpoint.every_steps=4", "checkpoint.every_epochs=0", "data.validation=0.2",
         "checkpoint.keep_best=true", "solver.lr=1e-12", "stop.patience=7"},
        more);
  }
  fs::path At(int64_t step) const { return folder_ / "whole/checkpoints" / CheckpointName(step); }
  int64_t BestStep(const std::string& output) const {
    return ReadStoredInfo(folder_ / output / "checkpoints/best.h5").position.step;
  }
  // Resumes in another folder, and returns the output.
  std::string Elsewhere(const Keys& keys, int64_t step, Summary& summary) {
    fs::remove_all(folder_ / "elsewhere");
    testing::internal::CaptureStderr();
    summary = Run(Plain("elsewhere", keys), {.resume = At(step).string()}).summary;
    return testing::internal::GetCapturedStderr();
  }
};

TEST_F(ResumeElsewhere, BestPatienceAndTargetAreThoseOfTheWholeRun) {
  const Keys cases[] = {Idle(), Idle({"cluster.workers=2"}),
                        Idle({"solver.lr=0.02", "stop={target: 0.3}", "epochs=4"})};
  for (const Keys& keys : cases) {
    fs::remove_all(folder_ / "whole");
    const Summary whole = Run(Plain("whole", keys)).summary;
    ASSERT_TRUE(whole.best.has_value());
    for (const fs::path& newest : Checkpoints("whole")) {
      SCOPED_TRACE(newest.filename().string());
      Summary again;
      const int64_t step = ReadStoredInfo(newest).position.step;
      const std::string message = Elsewhere(keys, step, again);
      // The folder there has the best weights, unless the run found better ones since.
      if (*whole.best->step <= step) {
        EXPECT_THAT(message, Not(HasSubstr("are gone")));
      }
      EXPECT_EQ(WholeRun(again), WholeRun(whole));
      EXPECT_EQ(BestStep("elsewhere"), *whole.best->step);
      // This holds even if no step was left: the run can be resumed from there.
      EXPECT_EQ(Checkpoints("elsewhere").at(0).filename(), Checkpoints("whole").at(0).filename());
      std::vector<json> evaluations;
      for (const json& line : WithoutTimes("whole")) {
        if (line["kind"] == "evaluation") evaluations.push_back(line);
      }
      std::vector<json> there;
      for (const json& line : WithoutTimes("elsewhere")) {
        if (line["kind"] == "evaluation") there.push_back(line);
      }
      EXPECT_EQ(there, evaluations);
    }
  }
}

TEST_F(ResumeElsewhere, WhereTheBestWeightsAreGoneNoWorseOnesAreTakenForThem) {
  Run(Plain("whole", Idle()));
  fs::copy(folder_ / "whole", folder_ / "kept", fs::copy_options::recursive);
  Summary again;
  // The best weights were removed.
  fs::remove(folder_ / "whole/checkpoints/best.h5");
  EXPECT_THAT(Elsewhere(Idle(), 8, again),
              AllOf(HasSubstr("the weights of the best evaluation (step 2) are gone: "),
                    HasSubstr("the test is of the last weights")));
  EXPECT_FALSE(fs::exists(folder_ / "elsewhere/checkpoints/best.h5"));
  EXPECT_EQ(again.best->step, 2);
  EXPECT_FALSE(again.test->step.has_value());
  // The folder has the weights of another evaluation, as if its run had since found better ones.
  fs::copy_file(folder_ / "kept/checkpoints/best.h5", folder_ / "whole/checkpoints/best.h5");
  RewriteCheckpoint(folder_ / "whole/checkpoints/best.h5",
                    [](CheckpointInfo& info) { info.position.step = 6; });
  EXPECT_THAT(Elsewhere(Idle(), 8, again), HasSubstr("(step 2) are gone"));
  EXPECT_FALSE(fs::exists(folder_ / "elsewhere/checkpoints/best.h5"));
  // The same holds in its own folder: the run was killed after an evaluation that is not yet repeated.
  testing::internal::CaptureStderr();
  CopyUpTo("whole", At(8), "again");
  Run(Plain("again", Idle()), {.resume = "auto"});
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("best.h5 has those of step 6, and is written at the next one"),
                    HasSubstr("has the weights of step 6, the best evaluation was at step 2: the "
                              "test is of the last weights")));
  EXPECT_EQ(BestStep("again"), 6) << "nothing is lost";
}

// Another run has left its line files in the folder, but no checkpoints.
class ResumeOverAStranger : public ResumeElsewhere {
 protected:
  void Leave(const Keys& keys) const {
    fs::remove_all(folder_ / "elsewhere");
    Run(Plain("elsewhere", Joined(keys, {"seed=9", "solver.lr=0.02", "stop.patience=0"})));
    fs::remove_all(folder_ / "elsewhere/checkpoints");
  }
  // Returns the lowest step in the lines of the file; in metrics.jsonl, of the lines that are evaluations or of the
  // others.
  int64_t FirstStep(const std::string& file, bool evaluations = false) const {
    int64_t first = 1 << 20;
    std::istringstream in(ReadFile(folder_ / "elsewhere" / file));
    for (std::string text; std::getline(in, text);) {
      const json line = json::parse(text);
      if ((line.value("kind", "") == "evaluation") != evaluations) continue;
      first = std::min(first, line["step"].get<int64_t>());
    }
    return first;
  }
  std::vector<json> Evaluations(const std::string& output) const {
    std::vector<json> lines = WithoutTimes(output);
    std::erase_if(lines, [](const json& line) { return line["kind"] != "evaluation"; });
    return lines;
  }
};

TEST_F(ResumeOverAStranger, ItsLinesAreNotThisRuns) {
  const Keys keys = Idle({"gradients.every=2", "tensorboard=true", "log_first_steps=100"});
  const Summary whole = Run(Plain("whole", keys)).summary;
  Leave(keys);
  const Summary again = Run(Plain("elsewhere", keys), {.resume = At(8).string()}).summary;
  EXPECT_EQ(WholeRun(again), WholeRun(whole));
  EXPECT_EQ(Evaluations("elsewhere"), Evaluations("whole"));
  for (const char* file : {"metrics.jsonl", "ranks.jsonl", "gradients.jsonl"}) {
    EXPECT_GT(FirstStep(file), 8) << file;
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "elsewhere/tensorboard"), {}), 1);
}

TEST_F(ResumeOverAStranger, ItsSummaryDoesNotSayThatThisRunIsComplete) {
  const Keys keys = Idle({"max_steps=8"});
  const Summary whole = Run(Plain("whole", keys)).summary;
  Leave(keys);
  const TrainResult again = Run(Plain("elsewhere", keys), {.resume = At(8).string()});
  EXPECT_FALSE(again.finished_before);
  EXPECT_EQ(again.summary.weights_sha256, whole.weights_sha256);
  EXPECT_EQ(json::parse(ReadFile(folder_ / "elsewhere/summary.json"))["weights_sha256"],
            whole.weights_sha256);
}

TEST_F(ResumeOverAStranger, ASimulationBeginsItsFilesAnew) {
  const Keys keys = Joined(Dense(), {"strategy={name: ps_bsp}"});
  const Summary whole = Simulate(Config("whole", keys), "none");
  const fs::path main = Checkpoints("whole")[1];
  const auto leave = [&] {
    fs::remove_all(folder_ / "elsewhere");
    Simulate(Config("elsewhere", Joined(keys, {"seed=9", "solver.lr=0.05"})), "none");
    fs::remove_all(folder_ / "elsewhere/checkpoints");
  };
  leave();
  ExpectSame(Simulate(Config("elsewhere", keys), main.string()), whole);
  ExpectSameMetrics("elsewhere", "whole");
}

}  // namespace
}  // namespace dtrain
