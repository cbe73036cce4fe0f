// Tests `dtrain study`: its files, and how one that was killed goes on.
#include <gmock/gmock.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tests/support/seeds.h"
#include "tests/system/system_fixture.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class StudySystemTest : public SystemTest {
 protected:
  // Writes a study of a few seconds; `more` are further keys.
  void Write(const std::string& more) const {
    std::ofstream(folder_ / "s.yaml")
        << "run: quickstart\nseeds: [1, 2]\n"
           "set: {epochs: 2, threads: 1, data: {train_samples: 512, test_samples: 128}, "
           "cluster.workers: 2}\n"
           "tune: {keys: {solver.lr: [0.01, 0.05]}, epochs: 1}\n"
           "methods: {A: {strategy.name: ps_asp}, B: {strategy.name: ps_bsp}}\n"
           "measure: [test.accuracy, seconds, bytes_per_gradient]\n"
           "rank_by: seconds\n"
        << more;
  }
  std::string File(const std::string& name) const { return Slurp(folder_ / name); }
};

TEST_F(StudySystemTest, KilledAtAnyMomentItGoesOnToTheSameResults) {
  Write("");
  const Outcome whole = Run("study s.yaml --output whole");
  ASSERT_EQ(whole.code, 0) << whole.err;
  EXPECT_THAT(whole.out, AllOf(HasSubstr("4 of 4 runs have ended"), HasSubstr("solver.lr=")));
  const char* const given = std::getenv("DTRAIN_KILLS");
  const int kills = given == nullptr ? 3 : std::atoi(given);
  Draws random(static_cast<uint64_t>(FirstSeed()));
  for (int i = 0; i < kills; ++i) {
    const double seconds = random.Real(0.05, 2);
    SCOPED_TRACE("killed after " + std::to_string(seconds) + " s");
    Run("study s.yaml --output killed", "timeout --signal=KILL " + std::to_string(seconds));
    if (i % 4 == 3) fs::remove_all(folder_ / "killed");  // else nothing would be left to kill
  }
  // Runs that the kill has orphaned may hold their folders for a moment.
  Outcome last;
  for (int i = 0; i < 50; ++i) {
    last = Run("study s.yaml --output killed");
    if (last.code == 0) break;
  }
  ASSERT_EQ(last.code, 0) << last.err;
  EXPECT_EQ(File("killed/results.csv"), File("whole/results.csv"));
  EXPECT_EQ(File("killed/jobs.jsonl"), File("whole/jobs.jsonl"));
  EXPECT_EQ(File("killed/table.md"), File("whole/table.md"));
  size_t runs = 0;
  for (const auto& run : fs::directory_iterator(folder_ / "killed/runs")) {
    EXPECT_FALSE(fs::exists(run.path() / "checkpoints")) << run.path();
    ++runs;
  }
  EXPECT_EQ(runs, 8u) << "two tuning runs of each method, and two results";
}

TEST_F(StudySystemTest, ResultsAloneAreEnoughToGoOn) {
  Write("");
  ASSERT_EQ(Run("study s.yaml --output r --methods A").code, 0);
  const std::string half = File("r/results.csv");
  EXPECT_THAT(half, AllOf(HasSubstr("result,,A,2,"), Not(HasSubstr(",B,"))));
  fs::remove_all(folder_ / "r/runs");
  const Outcome rest = Run("study s.yaml --output r --json");
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_THAT(rest.err,
              AllOf(HasSubstr("2 of 4 tuning runs are done already"), Not(HasSubstr("] A, "))));
  EXPECT_EQ(nlohmann::json::parse(rest.out)["ended"], 4);
  for (size_t at = 0; at < half.size();) {
    const size_t end = half.find('\n', at) + 1;
    EXPECT_THAT(File("r/results.csv"), HasSubstr(half.substr(at, end - at)));
    at = end;
  }
  EXPECT_THAT(File("r/study.html"), HasSubstr("\"ended\":4"));
  EXPECT_THAT(File("r/table.tex"), HasSubstr("\\bottomrule"));
}

TEST_F(StudySystemTest, CheckpointsThatAKillHasLeftGoAndThoseThatWereKeptStay) {
  Write("");
  const auto with_checkpoints = [&](const std::string& study) {
    std::vector<fs::path> found;
    for (const auto& run : fs::directory_iterator(folder_ / study / "runs")) {
      if (fs::exists(run.path() / "checkpoints")) found.push_back(run.path());
    }
    return found;
  };
  ASSERT_EQ(Run("study s.yaml --output kept --methods B --keep-checkpoints").code, 0);
  EXPECT_EQ(with_checkpoints("kept").size(), 4u);
  ASSERT_EQ(Run("study s.yaml --output gone --methods B").code, 0);
  EXPECT_TRUE(with_checkpoints("gone").empty());
  // The kill came after the record was written, and before the checkpoints were removed.
  for (const fs::path& run : with_checkpoints("kept")) {
    fs::copy(run / "checkpoints", folder_ / "gone/runs" / run.filename() / "checkpoints",
             fs::copy_options::recursive);
  }
  EXPECT_EQ(with_checkpoints("gone").size(), 4u);
  for (const char* study : {"kept", "gone"}) {
    const Outcome again = Run(std::string("study s.yaml --methods B --output ") + study);
    ASSERT_EQ(again.code, 0) << again.err;
    EXPECT_THAT(again.err, HasSubstr("2 of 2 runs are done already"));
  }
  EXPECT_EQ(with_checkpoints("kept").size(), 4u) << "kept by an earlier start";
  EXPECT_TRUE(with_checkpoints("gone").empty());
}

TEST_F(StudySystemTest, RealRunsHaveTheSameResultsButForTheirSeconds) {
  Write("by: train\nexpect: [{claim: it learns, value: test.accuracy(B), at_least: 0.5}]\n");
  // Only the run with a server that waits for all repeats to the bit.
  for (const char* output : {"one", "two"}) {
    const Outcome outcome = Run(std::string("study s.yaml --methods B --json --output ") + output);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  const auto accuracies = [&](const std::string& output) {
    std::vector<double> found;
    std::istringstream lines(File(output + "/jobs.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      found.push_back(nlohmann::json::parse(line)["numbers"]["test.accuracy"]);
    }
    return found;
  };
  EXPECT_EQ(accuracies("one").size(), 4u) << "two tuning runs, two seeds";
  EXPECT_EQ(accuracies("one"), accuracies("two"));
}

TEST_F(StudySystemTest, ALauncherStartsAllRanksOfARun) {
  std::ofstream(folder_ / "launch.sh")
      << "#!/bin/sh\necho \"$1 ranks\" >>launched\nranks=$1; shift\n"
         "exec mpirun --allow-run-as-root --oversubscribe -n $ranks \"$@\"\n";
  fs::permissions(folder_ / "launch.sh", fs::perms::owner_all);
  Write("by: train\n");
  const Outcome outcome =
      Run("study s.yaml --methods A --launcher './launch.sh {ranks}' --output l --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(File("launched"), "3 ranks\n3 ranks\n3 ranks\n3 ranks\n") << "two workers and a server";
  Write("");
  EXPECT_THAT(Run("study s.yaml --launcher 'mpirun -n {ranks}'").err,
              HasSubstr("this study simulates"));
  EXPECT_THAT(Run("study s.yaml --launcher 'mpirun -n 2'").err, HasSubstr("how many ranks"));
}

// Results are kept in the project, and a change of a study or of the tables must not leave them behind.
TEST_F(StudySystemTest, TheTablesInTheProjectAreThoseOfTheirResults) {
  size_t studies = 0;
  for (const auto& entry : fs::directory_iterator(DTRAIN_SOURCE_DIR "/tools/reproduce")) {
    if (!fs::exists(entry.path() / "jobs.jsonl")) continue;
    const std::string name = entry.path().filename().string();
    SCOPED_TRACE(name);
    fs::create_directory(folder_ / name);
    fs::copy_file(entry.path() / "jobs.jsonl", folder_ / name / "jobs.jsonl");
    const Outcome outcome = Run("study " + name + " --tables --output " + name);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    for (const char* file : {"jobs.jsonl", "results.csv", "table.md", "table.tex"}) {
      EXPECT_TRUE(File(name + "/" + file) == Slurp(entry.path() / file)) << file;
    }
    ++studies;
  }
  EXPECT_GE(studies, 8u);
}

TEST_F(StudySystemTest, UnequalServersAreRefusedBeforeAnythingStarts) {
  Write("cases: {c: {}}\n");
  std::ofstream(folder_ / "u.yaml")
      << "run: quickstart\nset: {cluster.workers: 4}\nmeasure: [seconds]\n"
         "methods: {SSP: {strategy.name: ps_ssp}, GSSP: {strategy.name: gssp, strategy.servers: "
         "4}}\n";
  const Outcome refused = Run("study u.yaml --output u");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("strategy.servers: SSP 1, GSSP 4"), HasSubstr("'why'")));
  EXPECT_FALSE(fs::exists(folder_ / "u"));
  std::ofstream(folder_ / "u.yaml", std::ios::app) << "why: {strategy.servers: as published}\n";
  const Outcome planned = Run("study u.yaml --output u --dry-run");
  EXPECT_EQ(planned.code, 0) << planned.err;
  EXPECT_THAT(planned.out, AllOf(HasSubstr("not equal: strategy.servers"),
                                 HasSubstr("as published"), HasSubstr("dtrain simulate --config")));
  EXPECT_FALSE(fs::exists(folder_ / "u"));
  EXPECT_THAT(Run("study s.yaml --methods C").err, HasSubstr("the study has no method 'C'"));
}

TEST_F(StudySystemTest, ARunThatDivergesIsAResultAndOneThatFailsIsNot) {
  std::ofstream(folder_ / "d.yaml")
      << "run: quickstart\nseeds: [1]\nset: {epochs: 1, threads: 1, data.train_samples: 256}\n"
         "methods: {calm: {}, wild: {solver.lr: 1.0e+30}}\nwhy: {solver.lr: one is too large}\n"
         "measure: [test.accuracy, 'seconds_to(test.accuracy, 0.01)']\nrank_by: seconds_to\n";
  const Outcome outcome = Run("study d.yaml --output d");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(File("d/results.csv"), HasSubstr("result,,wild,1,5,"));
  EXPECT_THAT(File("d/table.md"), HasSubstr("| wild | 1, 1 failed |"));
  std::ofstream(folder_ / "d" / "jobs.jsonl") << "something else\n";
  EXPECT_EQ(Run("study d.yaml --output d").code, 2);
  EXPECT_EQ(File("d/jobs.jsonl"), "something else\n");
}

TEST_F(StudySystemTest, ANumberThatNoRunHasIsNamedAfterTheFirstOne) {
  std::ofstream(folder_ / "m.yaml")
      << "run: quickstart\nseeds: [1]\nset: {epochs: 1, threads: 1, data.train_samples: 256}\n"
         "methods: {calm: {}}\nmeasure: [seconds, test.bleu]\nrank_by: seconds\n";
  const Outcome outcome = Run("study m.yaml --output m");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("no run has a value of 'test.bleu'"), Not(HasSubstr("'seconds'"))));
}

}  // namespace
}  // namespace dtrain
