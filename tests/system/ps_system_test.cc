// The parameter server as users start it: under mpirun, recorded, replayed, stopped and hung.
#include <signal.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/system/system_fixture.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

// Starts the command that follows and sends it SIGTERM when run/metrics.jsonl has several steps.
constexpr char kStopAfterSomeSteps[] =
    "sh -c '\"$@\" & pid=$!; "
    "while kill -0 $pid && ! grep -qs kind.:.step run/metrics.jsonl; do sleep 0.1; done; "
    "kill -TERM $pid; wait $pid' sh";

class PsSystemTest : public SystemTest {
 protected:
  // Returns the applied samples, in epochs, from the run's summary.
  double EpochsOf(const std::string& run) const {
    const std::string summary = Slurp(folder_ / run / "summary.json");
    const size_t at = summary.find("\"epochs\": ");
    return at == std::string::npos ? -1 : std::stod(summary.substr(at + 10));
  }
};

TEST_F(PsSystemTest, BspWithThreeShardsEndsWithTheWeightsOfAllReduce) {
  ASSERT_EQ(Run(std::string(kSmall) + "--workers 3 --output a").code, 0);
  ASSERT_EQ(Run(std::string(kSmall) +
                "--workers 3 --output b --set strategy.name=ps_bsp --set strategy.servers=3")
                .code,
            0);
  EXPECT_EQ(WeightsOf("b"), WeightsOf("a"));
}

// The record includes the boundary at which workers of equal speed are put into one group.  Steps are long compared
// with a busy machine's delays, which would otherwise make other groups.
TEST_F(PsSystemTest, ARecordedRunThatRegroupsReplaysToTheBit) {
  const std::string run = std::string(kSmall) +
                          "--workers 4 --output run --set strategy.record=true "
                          "--set strategy.name=gssp --set strategy.servers=2 "
                          "--set \"cluster.slowdown=[1,3,1,3]\" --set cluster.step_seconds=0.05 ";
  ASSERT_EQ(Run(run).code, 0);
  const auto summary = nlohmann::json::parse(Slurp(folder_ / "run/summary.json"));
  EXPECT_EQ(summary["protocol"]["regroups"], 1);
  const auto& workers = summary["workers_detail"];
  EXPECT_EQ(workers[0]["group"], workers[2]["group"]);
  EXPECT_NE(workers[0]["group"], workers[1]["group"]);
  const Outcome replay = Run("simulate --replay run/record.bin");
  EXPECT_EQ(replay.code, 0) << replay.err;
  EXPECT_THAT(replay.out,
              AllOf(HasSubstr("replayed " + WeightsOf("run")), HasSubstr("equal to the bit")));
}

TEST_F(PsSystemTest, ARecordedRunReplaysToTheBit) {
  const std::string run = std::string(kSmall) + "--workers 3 --set strategy.record=true ";
  for (const char* strategy : {"ps_asp", "ps_ssp", "inhad", "gssp"}) {
    const std::string output = std::string("run-") + strategy;
    ASSERT_EQ(Run(run + "--output " + output + " --set strategy.name=" + strategy).code, 0);
    const Outcome replay = Run("simulate --replay " + output + "/record.bin");
    EXPECT_EQ(replay.code, 0) << replay.err;
    EXPECT_THAT(replay.out,
                AllOf(HasSubstr("replayed " + WeightsOf(output)), HasSubstr("equal to the bit")));
  }
}

// Shared memory has the content that messages would carry: a replay, which copies, ends with the bits of the run.
TEST_F(PsSystemTest, ANodeSharesMemoryUnlessDisabled) {
  const std::string run = std::string(kSmall) +
                          "--workers 4 --set strategy.name=inhad --set strategy.record=true "
                          "--set cluster.per_node=2 ";
  for (const std::string window : {"true", "false"}) {
    const std::string output = "window-" + window;
    ASSERT_EQ(Run(run + "--output " + output + " --set window=" + window).code, 0);
    const auto summary = nlohmann::json::parse(Slurp(folder_ / output / "summary.json"));
    const auto& bytes = summary["communication"];
    EXPECT_GT(bytes["bytes_inside_nodes"], 0);
    EXPECT_EQ(bytes.value("bytes_lent", int64_t{0}),
              window == "true" ? bytes["bytes_inside_nodes"].get<int64_t>() : 0);
    const Outcome replay = Run("simulate --replay " + output + "/record.bin");
    EXPECT_EQ(replay.code, 0) << replay.err;
    EXPECT_THAT(replay.out,
                AllOf(HasSubstr("replayed " + WeightsOf(output)), HasSubstr("equal to the bit")));
  }
}

// kill -9 hits one rank while it writes a checkpoint, as nearly as a test can time it: the run continues, each worker
// with its own mini-batches, and every one is counted once.
TEST_F(PsSystemTest, AKilledRunGoesOnFromTheFilesOfItsRanks) {
  for (const std::string strategy : {"ps_asp --set compress.name=topk", "ps_ssp", "gssp",
                                     "gssp --set compress.name=gdtopk", "inhad"}) {
    SCOPED_TRACE(strategy);
    fs::remove_all(folder_ / "run");
    const std::string run =
        "train --config $CONFIGS/quickstart.yaml --workers 2 --set data.train_samples=3200 "
        "--set data.test_samples=200 --set checkpoint.every_steps=7 --set "
        "strategy.placement=colocated "
        "--set strategy.name=" +
        strategy + " --output $OUT/run ";
    std::thread killer([&] {
      const fs::path checkpoints = folder_ / "run" / "checkpoints";
      const auto half_written = [&] {
        std::error_code ignored;
        if (!fs::exists(checkpoints / "latest")) return false;
        for (const auto& file : fs::directory_iterator(checkpoints, ignored)) {
          const std::string name = file.path().filename();
          const size_t at = name.find(".rank-");
          if (at == std::string::npos) continue;
          if (!fs::exists(checkpoints / (name.substr(0, at) + ".h5"))) return true;
        }
        return false;
      };
      for (int i = 0; i < 60000 && !half_written(); ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      std::system(("exec pkill -9 -n -f -- '--output " + folder_.string() + "/run'").c_str());
    });
    const Outcome killed = Run(run);
    killer.join();
    EXPECT_EQ(killed.code, 137) << killed.err;
    const Outcome resumed = Run(run + "--resume auto");
    ASSERT_EQ(resumed.code, 0) << resumed.err;
    EXPECT_THAT(resumed.err, HasSubstr("resumed after step"));
    EXPECT_EQ(Run("ckpt verify run").code, 0);
    const auto info = nlohmann::json::parse(Run("ckpt info run --json").out);
    int64_t steps = 0;
    for (const auto& rank : info["ranks"]) steps += rank["steps"].get<int64_t>();
    EXPECT_EQ(info["samples_applied"],
              32 * steps);  // shards of 1600 samples, in whole mini-batches
  }
}

TEST_F(PsSystemTest, ARecordCutShortIsNamed) {
  ASSERT_EQ(Run(std::string(kSmall) + "--workers 2 --output run --set strategy.name=ps_asp "
                                      "--set strategy.record=true")
                .code,
            0);
  fs::resize_file(folder_ / "run" / "record.bin", 1000);
  const Outcome replay = Run("simulate --replay run/record.bin");
  EXPECT_EQ(replay.code, 6);
  EXPECT_THAT(replay.err, HasSubstr("run/record.bin: the record is cut short or damaged"));
}

TEST_F(PsSystemTest, AnInterruptedRunResumes) {
  const std::string run =
      std::string(kSmall) + "--workers 2 --output run --set strategy.name=ps_bsp ";
  ASSERT_EQ(Run(std::string(kSmall) + "--workers 2 --output whole").code, 0);
  ASSERT_EQ(Run(run + "--set max_steps=40").code, 0);
  ASSERT_EQ(Run(run + "--resume auto").code, 0);
  EXPECT_EQ(WeightsOf("run"), WeightsOf("whole"));
}

TEST_F(PsSystemTest, AStoppedAsynchronousRunIsReadyToResume) {
  const std::string run =
      std::string(kSmall) + "--workers 2 --output run --set strategy.name=ps_asp ";
  const Outcome stopped = Run(run + "--set cluster.step_seconds=0.1", kStopAfterSomeSteps);
  EXPECT_EQ(stopped.code, 75) << stopped.err;
  EXPECT_TRUE(fs::exists(folder_ / "run" / "checkpoints" / "latest"));
  EXPECT_THAT(Slurp(folder_ / "run" / "summary.json"), HasSubstr("\"status\": \"stopped\""));
  EXPECT_LT(EpochsOf("run"), 3);
  const Outcome resumed = Run(run + "--resume auto");
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("resumed after step"));
  EXPECT_GE(EpochsOf("run"), 3);
  // The mini-batch that reaches the end, and one of the worker that learnt of it late.
  EXPECT_LT(EpochsOf("run"), 3 + 2 * 32 / 2000.0);
}

// With one worker the order of updates is fixed, and the weights depend on the order of the data: the resumed run
// continues with the data of an undisturbed one.
TEST_F(PsSystemTest, AStoppedAsynchronousRunGoesOnWithItsData) {
  const std::string run = std::string(kSmall) + "--workers 1 --set strategy.name=ps_asp --output ";
  ASSERT_EQ(Run(run + "whole").code, 0);
  const Outcome stopped = Run(run + "run --set cluster.step_seconds=0.1", kStopAfterSomeSteps);
  ASSERT_EQ(stopped.code, 75);
  EXPECT_THAT(stopped.err, HasSubstr("; go on with --resume auto\n"));
  EXPECT_LT(EpochsOf("run"), 3);
  ASSERT_EQ(Run(run + "run --resume auto").code, 0);
  EXPECT_EQ(EpochsOf("run"), 3);
  EXPECT_EQ(WeightsOf("run"), WeightsOf("whole"));
}

// Stops the process of a rank, as the kernel does when it swaps or hangs.  The output is named after this process,
// because the test may also run elsewhere on the machine.  The workers watch for 2 s and the launcher for 5 s: on a
// loaded machine the launcher may be the first to see it, and both name the rank.
TEST_F(PsSystemTest, AServerThatNeverAnswersEndsTheRunNamed) {
  const std::string output = "hung-" + std::to_string(::getpid());
  // Stops the server when the workers' steps are being counted.
  std::thread stopper([&] {
    const std::string server =
        "cd '" + folder_.string() +
        "'; for i in $(seq 600); do "
        "grep -qs '\"kind\":\"step\"' " +
        output +
        "/metrics.jsonl && "
        "for p in $(pgrep -f -- '--output " +
        output +
        "'); do "
        "grep -qz '^OMPI_COMM_WORLD_RANK=2$' /proc/$p/environ 2>/dev/null && "
        "kill -STOP $p && exit; done; sleep 0.1; done; exit 1";
    EXPECT_EQ(std::system(server.c_str()), 0);
  });
  const Outcome run = Run(std::string(kSmall) + "--workers 2 --output " + output +
                          " --set strategy.name=ps_ssp --set epochs=1000 "
                          "--set stall_seconds=2 --set checkpoint.every_epochs=0 "
                          "--set evaluate.every_epochs=0");
  stopper.join();
  EXPECT_EQ(run.code, 7) << run.err;
  EXPECT_THAT(run.err,
              AnyOf(AllOf(HasSubstr("nothing has moved for 2 s"), HasSubstr("ps_ssp worker 0"),
                          HasSubstr("rank 2: server 0, no answer")),
                    AllOf(HasSubstr("rank 2 ("), HasSubstr("it was stopped and not continued"))));
}

// Over MPI no run continues without a rank: it ends and names the lost one.
TEST_F(PsSystemTest, AWorkerThatVanishesInARoundEndsTheRunNamed) {
  const std::string output = "vanished-" + std::to_string(::getpid());
  std::thread killer([&] {
    const std::string worker =
        "cd '" + folder_.string() + "'; for i in $(seq 600); do grep -qs '\"kind\":\"step\"' " +
        output + "/metrics.jsonl && for p in $(pgrep -f -- '--output " + output +
        "'); do grep -qz '^OMPI_COMM_WORLD_RANK=3$' /proc/$p/environ 2>/dev/null && "
        "kill -KILL $p && exit; done; sleep 0.1; done; exit 1";
    EXPECT_EQ(std::system(worker.c_str()), 0);
  });
  const Outcome run = Run(std::string(kSmall) + "--workers 4 --output " + output +
                          " --set strategy.name=inhad --set cluster.per_node=2 "
                          "--set strategy.pull_timeout=1 --set epochs=1000 "
                          "--set checkpoint.every_epochs=0 --set evaluate.every_epochs=0");
  killer.join();
  EXPECT_EQ(run.code, 137) << run.err;
  EXPECT_THAT(run.err, AllOf(HasSubstr("rank 3 ("), HasSubstr("was killed by signal 9")));
}

TEST_F(PsSystemTest, DeathsAreForSimulations) {
  std::ofstream(folder_ / "deaths.yaml")
      << "model: lenet5\ndata: {name: digits, train_samples: 320, test_samples: 64}\nbatch: 32\n"
         "epochs: 2\nstrategy: {name: inhad, pull_timeout: 1}\n"
         "cluster:\n  workers: 4\n  per_node: 2\n  deaths: [{node: 1, at_seconds: 0.002}]\n";
  const Outcome train = Run("train --config deaths.yaml --output trained");
  EXPECT_EQ(train.code, 2);
  EXPECT_THAT(train.err, HasSubstr("deaths.yaml:9:12: node 1 dies in a simulation only"));
  const Outcome simulated = Run("simulate --config deaths.yaml");
  EXPECT_EQ(simulated.code, 0) << simulated.err;
  EXPECT_THAT(simulated.out, HasSubstr("worker 2 of node 1 died at 0.002 s"));
}

TEST_F(PsSystemTest, ErrorsInTheStrategyAreNamed) {
  const Outcome staleness = Run(
      std::string(kSmall) + "--output x --set strategy.name=ps_ssp --set strategy.staleness=-1");
  EXPECT_EQ(staleness.code, 2);
  EXPECT_THAT(staleness.err, HasSubstr("staleness"));
  const Outcome servers = Run(std::string(kSmall) +
                              "--output x --set strategy.name=ps_bsp "
                              "--set strategy.servers=65000 --dry-run");
  EXPECT_EQ(servers.code, 2);
  EXPECT_THAT(servers.err,
              HasSubstr("strategy.servers is 65000, but the model has only 61706 parameters"));
  const Outcome ranks =
      Run(std::string(kSmall) + "--output x --set strategy.name=ps_bsp --set cluster.workers=3",
          "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n 3");
  EXPECT_EQ(ranks.code, 2);
  EXPECT_THAT(ranks.err, HasSubstr("3 workers and 1 server, but the launcher started 3 ranks"));
}

TEST_F(PsSystemTest, StrategiesAreComparedInVirtualTime) {
  const Outcome run =
      Run("simulate --config $CONFIGS/quickstart.yaml --set data.train_samples=600 --set epochs=1 "
          "--set data.test_samples=200 --workers 4 --compare allreduce ps_bsp ps_ssp ps_asp "
          "ps_asp+topk "
          "--seeds 1,2");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("virtual s"), HasSubstr("\nallreduce "),
                             HasSubstr("\nps_bsp "), HasSubstr("\nps_ssp "), HasSubstr("\nps_asp "),
                             HasSubstr("\nps_asp+topk "), HasSubstr("+-")));
}

}  // namespace
}  // namespace dtrain
