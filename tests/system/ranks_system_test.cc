// Tests how `dtrain train` starts ranks, and what they print on stderr.
#include <regex>

#include "tests/system/system_fixture.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Ranks : public SystemTest {
 protected:
  // Runs `options` of a short run in folder `run`.
  Outcome Train(const std::string& run, const std::string& options) {
    return Run(
        "train --config $CONFIGS/quickstart.yaml --set data.train_samples=256 "
        "--set data.test_samples=64 --set max_steps=3 --output $OUT/" +
        run + " " + options);
  }
};

TEST_F(Ranks, HostsAreFilledWithWorkers) {
  const Outcome there = Train("hosts", "--hosts localhost:2");
  EXPECT_EQ(there.code, 0) << there.err;
  EXPECT_EQ(Train("workers", "--workers 2").code, 0);
  EXPECT_THAT(Slurp(folder_ / "hosts/summary.json"), HasSubstr("\"workers\": 2,"));
  EXPECT_EQ(WeightsOf("hosts"), WeightsOf("workers"));
}

TEST_F(Ranks, ServersTakeTheirShareOfTheHosts) {
  const Outcome there = Train("ps", "--hosts localhost:3 --set strategy.name=ps_ssp");
  EXPECT_EQ(there.code, 0) << there.err;
  EXPECT_THAT(Slurp(folder_ / "ps/summary.json"),
              AllOf(HasSubstr("\"workers\": 2,"), HasSubstr("\"servers\": 1,")));
}

// This includes ranks that another launcher started: none of them trains.
TEST_F(Ranks, ADryRunIsTheFirstRanks) {
  const Outcome dry =
      Run("train --config $CONFIGS/quickstart.yaml --set data.train_samples=256 "
          "--set data.test_samples=64 --output $OUT/dry --dry-run",
          "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n 2");
  EXPECT_EQ(dry.code, 0) << dry.err;
  EXPECT_THAT(dry.out, AllOf(HasSubstr("workers   2 workers, batch 64 (32 per worker)"),
                             HasSubstr(" --set cluster.workers=2 ")));
  EXPECT_FALSE(fs::exists(folder_ / "dry"));
}

TEST_F(Ranks, HostsThatAreTooFewOrNoneAreRefused) {
  const Outcome few = Train("few", "--hosts localhost:2 --workers 2 --set strategy.name=ps_ssp");
  EXPECT_EQ(few.code, 2);
  EXPECT_THAT(few.err, HasSubstr("the run has 2 workers and 1 server, but --hosts localhost:2 "
                                 "takes 2 ranks"));
  const Outcome none = Train("none", "--hosts localhost:x");
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("'localhost:x' is no host"));
  EXPECT_FALSE(fs::exists(folder_ / "few"));
}

// As `scontrol suspend` does.  No rank waited for another during that time, and none hangs.
TEST_F(Ranks, ARunThatStoodStillGoesOn) {
  const std::string stop_and_go =
      "sh -c '\"$@\" & while kill -0 $! && ! grep -qs kind.:.step still/metrics.jsonl; do sleep "
      "0.1; done; "
      "all=$(pgrep -f \"$OUT/still\" | grep -vx $$); [ -n \"$all\" ] || exit 9; kill -STOP $all; "
      "sleep 8; kill -CONT $all; "
      "wait $!' sh";
  const Outcome still = Run(std::string(kSmall) +
                                "--workers 2 --set stall_seconds=1 --set strategy.name=ps_bsp "
                                "--output $OUT/still",
                            stop_and_go);
  EXPECT_EQ(still.code, 0) << still.err;
  EXPECT_THAT(still.err, Not(HasSubstr("did not answer")));
  EXPECT_EQ(
      Run(std::string(kSmall) + "--workers 2 --set strategy.name=ps_bsp --output $OUT/run").code,
      0);
  EXPECT_EQ(WeightsOf("still"), WeightsOf("run"));
}

// A shell may keep the variables of a Slurm job that has ended, or those of another mpirun's rank.
TEST_F(Ranks, VariablesOfAnotherJobChangeNothing) {
  const std::string slurm =
      "env SLURM_JOB_ID=123 SLURM_JOBID=123 SLURM_NODELIST=node01 SLURM_NNODES=1 "
      "SLURM_TASKS_PER_NODE=1 PMI_RANK=3 PMIX_NAMESPACE=123 OMPI_COMM_WORLD_SIZE=1 "
      "OMPI_COMM_WORLD_RANK=0 "
      "OMPI_MCA_ess_base_jobid=42 OMPI_MCA_orte_hnp_uri=1.0";
  const Outcome outcome =
      Run(std::string(kSmall) + "--workers 2 --set max_steps=2 --output $OUT/left", slurm);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

// A shell that a launcher began as its only rank is no rank of the run.
TEST_F(Ranks, AShellOfALauncherStartsRanksOfItsOwn) {
  const Outcome outcome =
      Run(std::string(kSmall) + "--workers 2 --set max_steps=2 --output $OUT/shell",
          "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun -n 1");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

// mpirun runs with --quiet, and this process says why no rank has started.
TEST_F(Ranks, WhereNoRankStartsMpirunsOwnWordsAreShown) {
  const Outcome outcome =
      Run(std::string(kSmall) + "--workers 2 --set max_steps=2 --output $OUT/none",
          "env OMPI_MCA_oob_tcp_if_include=eth9 OMPI_MCA_plm=nonsense");
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("mpirun says:"), HasSubstr("nonsense")));
}

TEST_F(Ranks, QuietLeavesResultsAlone) {
  const Outcome quiet = Train("quiet", "--quiet --workers 2");
  EXPECT_EQ(quiet.code, 0);
  // So short a run is warned of: its accuracy is that of guessing.
  EXPECT_THAT(quiet.err, AllOf(Not(HasSubstr(" info ")), Not(HasSubstr("samples/s"))));
  EXPECT_THAT(quiet.out, HasSubstr("test accuracy"));
}

TEST_F(Ranks, VerboseReachesEveryRank) {
  const Outcome verbose = Train("verbose", "-v --workers 2");
  EXPECT_THAT(verbose.err, AllOf(HasSubstr("debug starting mpirun"), HasSubstr("conv1 by ")));
  for (const char* rank : {"0", "1"}) {
    EXPECT_TRUE(std::regex_search(verbose.err, std::regex(std::string("debug \\[rank ") + rank)));
  }
  EXPECT_THAT(Train("plain", "--workers 2").err, Not(HasSubstr("debug")));
}

}  // namespace
}  // namespace dtrain
