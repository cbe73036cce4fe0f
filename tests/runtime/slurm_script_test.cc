#include "framework/launch/slurm_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tests/data/temp_folder.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

SlurmJob Job(int workers, int servers, int per_node, bool apart = false) {
  SlurmJob job;
  job.name = "lenet5_mnist";
  job.program = "build/release/dtrain";
  job.train = {"--config", "configs/runs/lenet5_mnist.yaml"};
  job.workers = workers;
  job.servers = servers;
  job.per_node = per_node;
  job.servers_apart = apart;
  return job;
}

SlurmJob By(const std::string& launcher, SlurmJob job = Job(4, 0, 2)) {
  job.launcher = launcher;
  return job;
}

// The outcome of a script whose commands are all replaced by fakes.
struct Played {
  int code = 0;
  std::string calls;  // one line for each call of a launcher or scontrol
  std::string hosts;  // the list of ranks, on one line
};

// `launcher` is the shell code of the fake srun and mpirun, which runs after their call is recorded; the nodes of the
// job are n0, n1, ...
Played Play(const SlurmJob& job, const std::string& launcher, const std::string& before = "") {
  const TempFolder folder;
  const std::string note = "#!/bin/bash\necho \"${0##*/} $*\" >>calls\n";
  folder.Write("bin/srun", note + launcher);
  folder.Write("bin/mpirun", note + launcher);
  folder.Write("bin/scontrol", note + "printf 'n%d\\n' {0..9}\n");
  folder.Write("job.sh", SlurmScript(job));
  const std::string script = "cd " + folder.path().string() +
                             " && chmod +x bin/* && PATH=$PWD/bin:$PATH SLURM_JOB_NAME=run "
                             "SLURM_JOB_ID=7 SLURM_JOB_NODELIST=n[0-9] SLURM_CPUS_ON_NODE=8 "
                             "bash job.sh >/dev/null";
  folder.Write("play.sh", before + script);
  Played played;
  played.code = WEXITSTATUS(std::system(("bash " + (folder / "play.sh").string()).c_str()));
  played.calls = ReadFile(folder / "calls");
  if (std::filesystem::exists(folder / "runs/run-7/hosts")) {
    played.hosts = ReadFile(folder / "runs/run-7/hosts");
    std::ranges::replace(played.hosts, '\n', ' ');
  }
  return played;
}

TEST(SlurmNodes, FollowFromPerNode) {
  EXPECT_EQ(NodesOf(Job(4, 0, 1)).total(), 4);
  EXPECT_EQ(NodesOf(Job(4, 0, 2)).total(), 2);
  EXPECT_EQ(NodesOf(Job(4, 1, 2)).total(), 3);
  EXPECT_EQ(NodesOf(Job(3, 1, 2)).total(), 2);
}

TEST(SlurmNodes, ServersApartShareNoNode) {
  const SlurmNodes nodes = NodesOf(Job(3, 3, 2, true));
  EXPECT_EQ(nodes.workers, 2);
  EXPECT_EQ(nodes.servers, 2);
}

TEST(SlurmNodes, GivenNodesDecidePerNode) {
  SlurmJob job = Job(8, 1, 1);
  job.nodes = 3;
  EXPECT_EQ(NodesOf(job).per_node, 3);
  job.servers_apart = true;  // two nodes for the workers, one for the server
  EXPECT_EQ(NodesOf(job).per_node, 4);
}

TEST(SlurmNodes, NodesThatCannotBeFilledAreAnError) {
  SlurmJob job = Job(4, 1, 1);
  job.nodes = 4;
  EXPECT_EQ(MessageOf<UsageError>([&] { NodesOf(job); }),
            "4 nodes cannot be filled with 4 workers and 1 server: at 2 a node they take 3 | "
            "take --nodes 3, or other numbers of workers and servers");
  job = Job(1, 0, 1);
  job.nodes = 2;
  EXPECT_THAT(MessageOf<UsageError>([&] { NodesOf(job); }),
              HasSubstr("2 nodes cannot be filled with 1 worker: at 1 a node they take 1"));
  job = Job(4, 1, 1, true);
  job.nodes = 1;
  EXPECT_THAT(MessageOf<UsageError>([&] { NodesOf(job); }), HasSubstr("take --nodes 2"));
}

TEST(SlurmNodes, ServersApartNeedServers) {
  EXPECT_EQ(MessageOf<UsageError>([] { NodesOf(Job(4, 0, 2, true)); }),
            "--servers-apart: the run has no servers with ranks of their own | "
            "leave it out, or take a strategy with placement: dedicated");
}

TEST(SlurmScript, AsksForNodesRanksAndTime) {
  SlurmJob job = Job(4, 0, 2);
  job.time = "2-12";
  job.partition = "long";
  EXPECT_THAT(SlurmScript(job),
              AllOf(HasSubstr("#SBATCH --job-name=lenet5_mnist\n#SBATCH --nodes=2\n"
                              "#SBATCH --ntasks-per-node=2\n#SBATCH --exclusive\n"
                              "#SBATCH --time=2-12\n#SBATCH --partition=long\n"),
                    HasSubstr("cpus=$((SLURM_CPUS_ON_NODE / per_node))")));
}

TEST(SlurmScript, ThreadsAreTheCpusOfATask) {
  SlurmJob job = Job(4, 0, 2);
  job.threads = 6;
  EXPECT_THAT(SlurmScript(job), AllOf(HasSubstr("#SBATCH --cpus-per-task=6\n"),
                                      HasSubstr("\ncpus=6 "), Not(HasSubstr("--exclusive"))));
}

TEST(SlurmScript, SrunsRanksGetTheStopSignalFromSlurm) {
  EXPECT_THAT(SlurmScript(By("srun")),
              AllOf(HasSubstr("--signal=USR1@120"), HasSubstr("launcher=${LAUNCHER:-srun}"),
                    Not(HasSubstr("trap"))));
}

TEST(SlurmScript, MpirunGetsTheStopSignalFromTheScript) {
  EXPECT_THAT(SlurmScript(By("mpirun")),
              AllOf(HasSubstr("--signal=B:USR1@120"), HasSubstr("mpirun -n"),
                    HasSubstr("kill -USR1"), Not(HasSubstr("srun"))));
}

TEST(SlurmScript, TianhesCommandsHaveOtherNames) {
  EXPECT_THAT(SlurmScript(By("yhrun")),
              AllOf(HasSubstr("launcher=${LAUNCHER:-yhrun}"), HasSubstr("with yhbatch")));
}

TEST(SlurmScript, FullNodesNeedNoListOfRanks) {
  EXPECT_THAT(SlurmScript(Job(3, 1, 2)),
              AllOf(Not(HasSubstr("HOSTFILE")), Not(HasSubstr("arbitrary"))));
}

TEST(SlurmScript, WorkersComeFirstAndServersAreApart) {
  EXPECT_EQ(Play(Job(4, 1, 2, true), "").hosts, "n0 n0 n1 n1 n2 ");
  EXPECT_EQ(Play(Job(3, 3, 2, true), "").hosts, "n0 n0 n1 n2 n2 n3 ");
  EXPECT_EQ(Play(Job(2, 2, 4, true), "").hosts, "n0 n0 n1 n1 ");
}

TEST(SlurmScript, AnUnevenLastNodeHasFewerRanks) {
  EXPECT_EQ(Play(Job(5, 0, 2), "").hosts, "n0 n0 n1 n1 n2 ");
  EXPECT_EQ(Play(By("mpirun", Job(4, 3, 3)), "").hosts, "n0 n0 n0 n1 n1 n1 n2 ");
}

TEST(SlurmScript, StartsTheRanksOnceAndEndsAsTheyDo) {
  for (const std::string launcher : {"srun", "mpirun"}) {
    const Played played = Play(By(launcher), "exit 5");
    EXPECT_EQ(played.code, 5);
    EXPECT_THAT(played.calls,
                AllOf(StartsWith(launcher), HasSubstr(launcher == "srun" ? "--ntasks=4" : "-n 4"),
                      EndsWith(" build/release/dtrain train --config "
                               "configs/runs/lenet5_mnist.yaml --workers 4 --output runs/run-7 "
                               "--resume auto\n")));
  }
  EXPECT_THAT(Play(By("srun"), "").calls, HasSubstr("--cpus-per-task=4 "));
}

TEST(SlurmScript, SrunStartsTheRanksTogetherAndEndsThemTogether) {
  EXPECT_THAT(Play(By("srun"), "echo fence $SLURM_PMIX_FENCE >>calls").calls,
              AllOf(HasSubstr(" --wait=60 "), HasSubstr("\nfence ring\n")));
}

TEST(SlurmScript, AStoppedRunGoesBackIntoTheQueue) {
  for (const std::string launcher : {"srun", "mpirun"}) {
    const Played played = Play(By(launcher), "exit 75");
    EXPECT_EQ(played.code, 75);
    EXPECT_THAT(played.calls, EndsWith("\nscontrol requeue 7\n"));
  }
}

TEST(SlurmScript, MpirunIsAskedToStopAndWaitedFor) {
  // The signal may arrive twice under Slurm.
  const Played played = Play(By("mpirun"),
                             "stop() { [ $((++signals)) = 2 ] && exit 75; kill -USR1 $PPID; }\n"
                             "signals=0; trap stop USR1; kill -USR1 $PPID\n"
                             "while :; do sleep 0.01; done\n");
  EXPECT_EQ(played.code, 75);
  EXPECT_THAT(played.calls, EndsWith("\nscontrol requeue 7\n"));
}

// Changing the numbers at the head of a script changes the run.
TEST(SlurmScript, ItsNumbersAreThoseOfTheRun) {
  EXPECT_THAT(SlurmScript(Job(4, 0, 2)),
              AllOf(HasSubstr("--workers \"$workers\""), Not(HasSubstr("strategy.servers"))));
  EXPECT_THAT(SlurmScript(Job(4, 2, 2)), HasSubstr("--set strategy.servers=\"$servers\""));
}

TEST(SlurmScript, BothLaunchersReadTheListOfRanks) {
  EXPECT_THAT(
      SlurmScript(By("srun", Job(4, 1, 2, true))),
      AllOf(HasSubstr("export SLURM_HOSTFILE=$hosts"), HasSubstr("--distribution=arbitrary"),
            HasSubstr("unset SLURM_NTASKS_PER_NODE")));
  EXPECT_THAT(SlurmScript(By("mpirun", Job(4, 1, 2, true))),
              HasSubstr("--map-by seq --hostfile \"$hosts\""));
}

TEST(SlurmScript, WordsOfTheCommandAreQuotedWhereTheyMustBe) {
  SlurmJob job = Job(2, 0, 2);
  job.train = {"--config", "my runs/a.yaml", "--set", "output=it's {config}", "--set", "lr=0.1"};
  EXPECT_THAT(SlurmScript(job),
              HasSubstr("train --config 'my runs/a.yaml' --set 'output=it'\\''s {config}' "
                        "--set lr=0.1\n"));
}

TEST(SlurmScript, WhatSlurmWouldNotTakeIsAnError) {
  EXPECT_EQ(MessageOf<UsageError>([] { SlurmScript(By("yrun")); }),
            "there is no launcher 'yrun' | did you mean 'srun'?  allowed: srun, yhrun, mpirun");
  SlurmJob job = Job(4, 0, 2);
  for (const char* time : {"", "tomorrow", "1h", "10\n#SBATCH", "-5", "1:2:3:4", "2-"}) {
    job.time = time;
    EXPECT_EQ(MessageOf<UsageError>([&] { SlurmScript(job); }),
              "'" + job.time +
                  "' is no time limit of Slurm | "
                  "minutes, hours:minutes:seconds or days-hours: 90, 1:30:00, 2-12");
  }
  job.time = "90";
  job.partition = "a b";
  EXPECT_EQ(MessageOf<UsageError>([&] { SlurmScript(job); }),
            "'a b' is no partition of Slurm | sinfo lists them");
}

TEST(SlurmScript, AsksForWhatTheSiteWants) {
  SlurmJob job = Job(4, 0, 2);
  job.account = "phys-42";
  job.qos = "long";
  job.memory = "64G";
  job.gres = "gpu:a100:2,shard:1";
  job.on_gpu = true;
  job.constraint = "[rack1|rack2]*2";
  job.mail_type = "END,TIME_LIMIT_90";
  job.mail_user = "a.b+c@d.org";
  EXPECT_THAT(SlurmScript(job),
              AllOf(HasSubstr("\n#SBATCH --account=phys-42\n#SBATCH --qos=long\n"
                              "#SBATCH --mem=64G\n#SBATCH --gres=gpu:a100:2,shard:1\n"
                              "#SBATCH --constraint=[rack1|rack2]*2\n"
                              "#SBATCH --mail-type=END,TIME_LIMIT_90\n"
                              "#SBATCH --mail-user=a.b+c@d.org\n"),
                    HasSubstr("\n##SBATCH --partition=NAME\n")));
  // Options that were not given are in the script, to be filled in.
  EXPECT_THAT(SlurmScript(Job(4, 0, 2)),
              AllOf(HasSubstr("\n##SBATCH --account=NAME\n"), HasSubstr("\n# module load NAME\n"),
                    Not(HasSubstr("\n#SBATCH --account"))));
}

TEST(SlurmScript, GpusWithoutARunOnThemAreAnError) {
  SlurmJob job = Job(4, 0, 2);
  for (const char* gres : {"gpu", "gpu:4", "gpu:a100:2,shard:1", "nvme:1,gpu=2"}) {
    job.gres = gres;
    EXPECT_EQ(MessageOf<UsageError>([&] { SlurmScript(job); }),
              "--gres " + job.gres +
                  " asks for GPUs, and the run computes on the CPU | set device: cuda in the "
                  "config, or give --device cuda; else leave the GPUs out");
  }
  for (const char* gres : {"", "nvme:1", "gpumem:4", "shard:1"}) {
    job.gres = gres;
    EXPECT_THAT(SlurmScript(job), StartsWith("#!/bin/bash\n"));
  }
}

TEST(SlurmScript, NodesAreSharedWhereAsked) {
  SlurmJob job = Job(4, 0, 2);
  job.shared = true;
  EXPECT_THAT(SlurmScript(job), Not(HasSubstr("--exclusive")));
}

TEST(SlurmScript, LoadsModulesBeforeTheRanksStart) {
  SlurmJob job = Job(4, 0, 2);
  job.modules = {"gcc/12", "openmpi/4.1+cuda"};
  const std::string module = "module() { echo \"module $*\" >>calls; [ \"$2\" != gcc/13 ]; }; ";
  EXPECT_THAT(Play(job, "", module + "export -f module; ").calls,
              StartsWith("module load gcc/12 openmpi/4.1+cuda\nsrun "));
  job.modules = {"gcc/13"};
  const Played lacking = Play(job, "", module + "export -f module; ");
  EXPECT_EQ(lacking.code, 1);
  EXPECT_EQ(lacking.calls, "module load gcc/13\n");
}

TEST(SlurmScript, WhatASiteWouldNotTakeIsAnError) {
  struct Refused {
    std::string SlurmJob::*value;
    const char* what;
  };
  for (const auto& [value, what] :
       {Refused{&SlurmJob::partition, "partition"}, Refused{&SlurmJob::account, "account"},
        Refused{&SlurmJob::qos, "quality of service"},
        Refused{&SlurmJob::memory, "amount of memory"},
        Refused{&SlurmJob::gres, "list of resources"},
        Refused{&SlurmJob::constraint, "list of features"},
        Refused{&SlurmJob::mail_type, "list of events"},
        Refused{&SlurmJob::mail_user, "mail address"}}) {
    for (const std::string text : {"-p", "a b", "a\n#SBATCH --x", "$(a)", "a;b", "'"}) {
      SlurmJob job = Job(4, 0, 2);
      job.*value = text;
      EXPECT_THAT(MessageOf<UsageError>([&] { SlurmScript(job); }),
                  StartsWith("'" + text + "' is no " + what + " of Slurm | "));
    }
  }
  for (const std::string name : {"", "-a", "a b", "a\nb", "$x"}) {
    SlurmJob job = Job(4, 0, 2);
    job.modules = {"gcc", name};
    EXPECT_THAT(MessageOf<UsageError>([&] { SlurmScript(job); }),
                StartsWith("'" + name + "' is no name of a module | "));
  }
}

TEST(SlurmScript, TimeMustBeLeftToTrain) {
  SlurmJob job = Job(4, 0, 2);
  for (const char* time : {"3", "3:00", "0:03:00", "0-0:3", "0-0:2:59", "0"}) {
    job.time = time;
    EXPECT_EQ(MessageOf<UsageError>([&] { SlurmScript(job); }),
              "a time limit of " + job.time +
                  " leaves no time to train: the run is stopped up to 180 s before | "
                  "take 5 minutes or more");
  }
  for (const char* time : {"4", "3:01", "1:00:00", "0-1", "0-0:4", "0-0:3:01", "7-0"}) {
    job.time = time;
    EXPECT_THAT(SlurmScript(job), HasSubstr("--time=" + job.time + "\n"));
  }
}

TEST(SlurmScript, ANameOfAJobHasNoOddCharacters) {
  EXPECT_EQ(SlurmJobName("lenet5_mnist-2.b"), "lenet5_mnist-2.b");
  EXPECT_EQ(SlurmJobName("my run\n%j/x"), "my_run__j_x");
  EXPECT_EQ(SlurmJobName(""), "dtrain");
}

// The scripts in launch/slurm are what this code prints.  With DTRAIN_REGENERATE set the test rewrites them, and fails
// if one has changed: review it.
struct Shipped {
  const char* file;
  const char* launcher;
  int servers;
};

class ShippedScript : public ::testing::TestWithParam<Shipped> {};

TEST_P(ShippedScript, IsWhatIsPrinted) {
  const Shipped& shipped = GetParam();
  SlurmJob job = By(shipped.launcher, Job(4, shipped.servers, 2, shipped.servers > 0));
  if (shipped.servers > 0) {
    job.name = "lenet5_mnist_ssp";
    job.train = {"--config", "configs/runs/lenet5_mnist_ssp.yaml"};
  }
  const std::string path = std::string(DTRAIN_SOURCE_DIR "/launch/slurm/") + shipped.file;
  const std::string shipped_text = ReadFile(path);
  if (std::getenv("DTRAIN_REGENERATE") != nullptr) WriteFileDurably(path, SlurmScript(job));
  EXPECT_EQ(shipped_text, SlurmScript(job));
}

INSTANTIATE_TEST_SUITE_P(Launch, ShippedScript,
                         ::testing::Values(Shipped{"train.sbatch", "srun", 0},
                                           Shipped{"train_mpirun.sbatch", "mpirun", 0},
                                           Shipped{"train_servers.sbatch", "srun", 1},
                                           Shipped{"train_servers_mpirun.sbatch", "mpirun", 1}));

}  // namespace
}  // namespace dtrain
