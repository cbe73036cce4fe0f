// The program as users start it: real processes under mpirun, killed, resumed, and with wrong arguments.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/system/system_fixture.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

TEST_F(SystemTest, WorkersTrainUnderTheSupervisorAndUnderPlainMpirun) {
  const Outcome supervised = Run(std::string(kSmall) + "--workers 2 --output a");
  ASSERT_EQ(supervised.code, 0) << supervised.err;
  EXPECT_THAT(supervised.out, HasSubstr("completed after 3.0 epochs"));
  const Outcome launched =
      Run(std::string(kSmall) + "--output b",
          "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n 2");
  ASSERT_EQ(launched.code, 0) << launched.err;
  EXPECT_EQ(WeightsOf("a").size(), 64u);
  EXPECT_EQ(WeightsOf("a"), WeightsOf("b"));
}

// kill -9 hits one rank when there is a checkpoint; mpirun ends the others.
TEST_F(SystemTest, ARunKilledInTheMiddleResumesToTheSameWeights) {
  const std::string run =
      "train --config $CONFIGS/quickstart.yaml --workers 2 --set checkpoint.every_steps=50 "
      "--set data.test_samples=500 ";
  ASSERT_EQ(Run(run + "--output whole").code, 0);
  std::thread killer([&] {
    const fs::path latest = folder_ / "part" / "checkpoints" / "latest";
    for (int i = 0; i < 6000 && !fs::exists(latest); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    // The newest process with this argument is a rank (exec: pkill must not match its own shell).
    std::system(("exec pkill -9 -n -f -- '--output " + folder_.string() + "/part'").c_str());
  });
  const Outcome killed = Run(run + "--output $OUT/part");
  killer.join();
  EXPECT_EQ(killed.code, 137) << killed.err;
  EXPECT_THAT(killed.err,
              AllOf(HasSubstr("signal 9"), HasSubstr("  go on from step-"),
                    HasSubstr(" with --resume auto; with --max-restarts N lost ranks ")));
  const Outcome resumed = Run(run + "--output $OUT/part --resume auto");
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("resumed after step"));
  EXPECT_EQ(WeightsOf("part"), WeightsOf("whole"));
}

TEST_F(SystemTest, TenErrorsAreReportedAtOnce) {
  std::ofstream(folder_ / "bad.yaml")
      << "model: {name: lenet6}\n"
         "data: {name: mnits}\n"
         "batch: -4\n"
         "epochs: 1.5\n"
         "solver: {name: sgd, lr: fast, momentum: 2, momentun: 0.9}\n"
         "strategy: {name: allredcue}\n"
         "colective: ordered\n"
         "seed: 010\n"
         "seed: 2\n"
         "threads: -1\n";
  const Outcome outcome = Run("check --config bad.yaml");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("lenet6"), HasSubstr("mnits"), HasSubstr("-4"), HasSubstr("1.5"),
                    HasSubstr("fast"), HasSubstr("momentun"), HasSubstr("allredcue"),
                    HasSubstr("colective"), HasSubstr("010"), HasSubstr("threads")));
  EXPECT_THAT(outcome.err, HasSubstr("nothing was started"));
}

TEST_F(SystemTest, MoreRanksThanTheConfigAsksFor) {
  const Outcome outcome =
      Run(std::string(kSmall) + "--set cluster.workers=3",
          "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n 2");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err,
              HasSubstr("the config asks for 3 workers, but the launcher started 2 ranks"));
}

TEST_F(SystemTest, MoreWorkersThanSamplesInABatch) {
  const Outcome outcome = Run(std::string(kSmall) + "--set batch=4 --workers 8");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err,
              HasSubstr("batch 4 is smaller than the number of workers (8, --workers 8)"));
}

TEST_F(SystemTest, AnUnknownCommandShowsTheHelp) {
  const Outcome outcome = Run("tarin");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--help"));
}

TEST_F(SystemTest, SeedsEndInATable) {
  const Outcome outcome = Run(std::string(kSmall) + "--seeds 1,2 --output runs");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("mean"), HasSubstr("seed")));
  EXPECT_NE(WeightsOf("runs/seed-1"), WeightsOf("runs/seed-2"));
}

// Tests one worker and several; a folder that is named by the time must be named in the hint.
TEST_F(SystemTest, AStoppedRunSaysHowItGoesOn) {
  const std::string by_time =
      std::string(kSmall) + "--set epochs=1000000 --set output=by-{time} --workers ";
  for (const std::string workers : {"1", "2"}) {
    const Outcome stopped =
        Run(by_time + workers,
            "sh -c '\"$@\" & pid=$!; while kill -0 $pid && ! grep -qs kind.:.step "
            "by-*/metrics.jsonl; do sleep 0.1; done; kill -TERM $pid; wait $pid' sh");
    EXPECT_EQ(stopped.code, 75) << stopped.err;
    EXPECT_THAT(stopped.err, ContainsRegex("stopped after step [0-9]+; go on with --resume auto "
                                           "--output by-[0-9-]+\n"));
    for (const auto& entry : fs::directory_iterator(folder_)) fs::remove_all(entry.path());
  }
}

TEST_F(SystemTest, EvaluationPrintsTheSameDigitsForAnyNumberOfRanks) {
  ASSERT_EQ(Run(std::string(kSmall) + "--output run").code, 0);
  const std::string eval =
      "eval --json --config $CONFIGS/quickstart.yaml --set data.train_samples=64 --weights run";
  const Outcome alone = Run(eval);
  ASSERT_EQ(alone.code, 0) << alone.err;
  EXPECT_THAT(alone.out, HasSubstr("\"samples\":2000"));
  for (const char* ranks : {"2", "3", "4"}) {
    const Outcome several = Run(
        eval,
        std::string("OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
                    "OMPI_MCA_mpi_yield_when_idle=1 mpirun --oversubscribe --bind-to none -n ") +
            ranks);
    EXPECT_EQ(several.out, alone.out) << ranks << " ranks: " << several.err;
  }
}

TEST_F(SystemTest, TimeWritesAProfile) {
  const Outcome outcome =
      Run("time --config $CONFIGS/quickstart.yaml --iterations 2 --profile p.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("conv1"), HasSubstr("all kernels"), HasSubstr("samples/s")));
  EXPECT_THAT(
      Slurp(folder_ / "p.json"),
      AllOf(HasSubstr("\"conv1\""), HasSubstr("backward_seconds"), HasSubstr("ready_seconds")));
}

// The measured times of the sums complete a profile, with which a run of as many workers plans.
TEST_F(SystemTest, BenchSumsCompletesAProfile) {
  ASSERT_EQ(Run("time --config $CONFIGS/quickstart.yaml --iterations 2 --profile p.json").code, 0);
  const std::string mine = " --workers 2 --set strategy.name=mgwfbp ";
  // New times replace only those of the same sums.
  auto profile = nlohmann::json::parse(Slurp(folder_ / "p.json"));
  const nlohmann::json times = {{{"bytes", 64}, {"seconds", 9.0}},
                                {{"bytes", 128}, {"seconds", 9.0}}};
  profile["sums"] = {{{"by", "ordered"}, {"workers", 2}, {"times", times}},
                     {{"by", "ordered"}, {"workers", 3}, {"times", times}},
                     {{"by", "ring"}, {"workers", 2}, {"times", times}}};
  std::ofstream(folder_ / "p.json") << profile.dump();
  const Outcome sums = Run("bench sums --profile p.json --output q.json" + mine);
  ASSERT_EQ(sums.code, 0) << sums.err;
  EXPECT_THAT(sums.out, AllOf(HasSubstr("\"by\":\"ordered\""), HasSubstr("\"bytes\":64,")));
  const auto all = nlohmann::json::parse(Slurp(folder_ / "q.json"))["sums"];
  ASSERT_EQ(all.size(), 3u) << all;
  EXPECT_EQ(all[0], profile["sums"][1]);
  EXPECT_EQ(all[1], profile["sums"][2]);
  EXPECT_LT(all[2]["times"][0]["seconds"], 9);
  // Each case is printed once, by one of three ranks.
  const std::string three =
      Run("bench sums --profile p.json --workers 3 --set collective=ordered").out;
  const size_t first = three.find("\"bytes\":64,");
  EXPECT_NE(first, std::string::npos) << three;
  EXPECT_EQ(three.find("\"bytes\":64,", first + 1), std::string::npos) << three;
  EXPECT_THAT(Run("plan --profile q.json --schedules wfbp --collectives ordered" + mine).out,
              HasSubstr("wfbp, ordered (measured)"));
  const std::string train = std::string(kSmall) + "--set max_steps=2 --output r" + mine;
  EXPECT_EQ(Run(train + "--set strategy.profile=q.json").code, 0);
  const Outcome other = Run("bench sums --profile p.json --workers 2 --set strategy.name=ps_asp");
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("'ps_asp' uses no all-reduce over all workers"));
}

TEST_F(SystemTest, ListsNameWhatExists) {
  EXPECT_THAT(Run("list layers").out, AllOf(HasSubstr("convolution"), HasSubstr("kernel")));
  EXPECT_THAT(Run("list strategies").out, AllOf(HasSubstr("allreduce"), HasSubstr("fusion_bytes")));
  EXPECT_THAT(Run("list strategies").out,
              HasSubstr("compressors:           bf16, dgc, fp16, gaussiank, randk, topk, trimmed"));
  EXPECT_THAT(Run("list compressors").out,
              AllOf(HasSubstr("topk"),
                    HasSubstr("strategies:            allreduce, auto, mgwfbp, naive, ps_asp"),
                    HasSubstr("density"), HasSubstr("exchange               all-reduce: how")));
  EXPECT_THAT(Run("list datasets").out, AllOf(HasSubstr("digits"), HasSubstr("mnist")));
  EXPECT_THAT(Run("list solvers").out, AllOf(HasSubstr("sgd"), HasSubstr("one_cycle")));
  EXPECT_THAT(Run("list models", "cd " DTRAIN_SOURCE_DIR ";").out,
              AllOf(HasSubstr("61706"), HasSubstr("431080")));
}

}  // namespace
}  // namespace dtrain
