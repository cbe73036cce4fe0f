// `dtrain train`: starts and supervises the ranks of a run, or trains as a rank that a launcher has started.
#include <unistd.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <optional>

#include <fmt/format.h>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/cli/command.h"
#include "framework/cli/dry_run.h"
#include "framework/cli/standard_streams.h"
#include "framework/cli/train_report.h"
#include "framework/comm/gather.h"
#include "framework/core/log.h"
#include "framework/core/process.h"
#include "framework/core/text.h"
#include "framework/device/cpu/threads.h"
#include "framework/launch/heartbeat.h"
#include "framework/launch/process_folder.h"
#include "framework/launch/rank_watch.h"
#include "framework/launch/status_record.h"
#include "framework/launch/stop_signal.h"
#include "framework/launch/supervisor.h"
#include "framework/launch/world.h"
#include "framework/results/run_folder.h"
#include "framework/results/run_lock.h"
#include "framework/setup/run_exchange.h"
#include "framework/setup/run_setup.h"
#include "framework/train/trainer.h"

namespace dtrain {
namespace {

struct TrainOptions {
  ConfigOptions config;
  int workers = 0;  // 0: the config's number
  std::string hosts;
  std::vector<uint64_t> seeds;
  std::string output;
  int max_restarts = 0;
  bool dry_run = false;
  TrainRequest request;

  // Returns the config options with --workers and --output as overrides.
  ConfigOptions Effective() const {
    ConfigOptions effective = config;
    effective.SetWorkers(workers);
    if (!output.empty()) {
      effective.Set("output=" + config::QuoteYaml(output), "--output " + ShellWord(output));
    }
    return effective;
  }
};

// Owns the folder of a run whose name contains the time.  The folder is the run's alone, even if several runs start in
// one second.  The destructor removes it if it is empty.
class OwnFolder {
 public:
  explicit OwnFolder(RunConfig& config) {
    if (config.output_has_time) made_ = config.output = MakeOwnFolder(config.output);
  }
  ~OwnFolder() {
    if (!made_.empty()) ::rmdir(made_.c_str());  // fails if the folder is not empty
  }
  OwnFolder(const OwnFolder&) = delete;

 private:
  std::string made_;
};

// Logs that --resume auto finds no checkpoint in a new folder.
void TellOfFreshStart(const RunConfig& config, const TrainRequest& request) {
  if (!config.output_has_time || request.resume != "auto") return;
  log::Info(
      "--resume auto starts afresh: the run folder is a new one; --output names the one to go "
      "on with");
}

// Returns the config for the ranks that were started.  If the config names no number of workers, it is derived from the
// number of ranks.  `before` is the config if it was already read, or null.
RunConfig ConfigForRanks(const TrainOptions& options, const RunConfig* before, int ranks) {
  ConfigOptions effective = options.Effective();
  RunConfig config = LoadConfig(effective, before);
  RefuseDeaths(config.cluster.deaths);
  const Placement placement = PlacementOf(config);
  if (placement.ranks() == ranks) return config;
  const int apart = placement.ranks() - placement.workers;  // ranks that only run a server
  if (config.workers_given || ranks <= apart) {
    throw UsageError(
        fmt::format("the config asks for {}{}, but the launcher started {}",
                    Counted(placement.workers, "worker"),
                    apart > 0 ? " and " + Counted(apart, "server") : "", Counted(ranks, "rank")),
        apart > 0 ? "start as many ranks as workers and servers together"
                  : "start as many ranks as cluster.workers says, or leave that key out; if no "
                    "launcher started this, unset OMPI_COMM_WORLD_SIZE and PMIX_RANK");
  }
  effective.overrides.push_back(fmt::format("cluster.workers={}", ranks - apart));
  return LoadConfig(effective, &config);
}

// Checks that the ranks fit on the hosts of --hosts.  If the number of workers is not given, sets it to the slots of
// the hosts less the servers.
void FillHosts(TrainOptions& options, RunConfig& config) {
  const Placement placement = PlacementOf(config);
  const int slots = SlotsOf(ParseHosts(options.hosts));
  const int apart = placement.ranks() - placement.workers;
  const std::string servers = apart > 0 ? " and " + Counted(apart, "server") : "";
  if (config.workers_given && placement.ranks() > slots) {
    throw UsageError(fmt::format("the run has {}{}, but --hosts {} takes {}",
                                 Counted(placement.workers, "worker"), servers, options.hosts,
                                 Counted(slots, "rank")),
                     "name more hosts, or more ranks of each, or take fewer workers");
  }
  if (config.workers_given) return;
  if (slots <= apart) {
    throw UsageError(fmt::format("--hosts {} takes {}: none is left for workers beside {}",
                                 options.hosts, Counted(slots, "rank"), Counted(apart, "server")),
                     "name more hosts, or more ranks of each");
  }
  options.workers = slots - apart;
  config = LoadConfig(options.Effective(), &config);
}

// True if no supervisor of dtrain watches the ranks of this machine, so that they must watch each other.
bool AreUnsupervised() { return InsideMpiLaunch() && !IsPrivateFolder(StatusFolder()); }

bool AreOnSeveral(const std::vector<std::string>& hosts) {
  return std::ranges::any_of(hosts, [&](const std::string& host) { return host != hosts[0]; });
}

// Ends the process.  Called on the thread of a watch; the main thread may be blocked anywhere.  The launcher then ends
// the other ranks.
void LeaveStalled(const std::string& what) {
  const StalledError error(what);
  TellError(error);
  std::_Exit(static_cast<int>(error.code()));
}

// Starts a watch over the ranks of this machine, from before MPI_Init on.  `config` is set if it had to be read for
// that.
std::unique_ptr<RankWatch> WatchRanks(const TrainOptions& options,
                                      std::optional<RunConfig>& config) {
  if (!AreUnsupervised()) return nullptr;
  const std::optional<int> rank = RankOf(::getpid());
  if (!rank) return nullptr;
  double stall_seconds = 0;
  try {
    config = LoadConfig(options.Effective());
    stall_seconds = config->stall_seconds;
  } catch (const Error&) {  // the ranks report the error together
  }
  return std::make_unique<RankWatch>(*rank, ::getppid(), stall_seconds, LeaveStalled);
}

// Returns the options with which the command resumes the run.  A folder named by the time would be a new one in the
// next start, so it is named explicitly.
std::string ResumeOptions(const RunConfig& config) {
  return config.output_has_time ? "--resume auto --output " + ShellWord(config.output)
                                : "--resume auto";
}

// `before` is the config if it was already read.
int TrainAsRank(const TrainOptions& options, const Invocation& invocation,
                std::optional<RunConfig> before) {
  const StopSignals signals;
  const std::unique_ptr<RankWatch> watch = WatchRanks(options, before);
  std::optional<Heartbeat> heartbeat;  // beats until MPI has ended
  return RunOnRanks(invocation.argc, invocation.argv, [&](World& world) {
    Transport& transport = world.transport();
    RunConfig config;
    std::optional<OwnFolder> own;
    TryTogether(transport, [&] {
      config = ConfigForRanks(options, before ? &*before : nullptr, transport.size());
      if (transport.rank() != 0) return;
      TellOfFreshStart(config, options.request);
      own.emplace(config);
    });
    config.output = Broadcast(transport, config.output);
    const std::vector<std::string> hosts = AllGather(transport, HostName());
    TryTogether(transport, [&] { PlaceOnHosts(hosts, config); });
    if (StatusFolder().empty() ? InsideMpiLaunch() : AreOnSeveral(hosts)) {
      heartbeat.emplace(transport, config.stall_seconds, hosts, LeaveStalled);
    }
    const TrainResult result = Train(config, options.request, transport);
    const bool table_follows = !options.seeds.empty() && invocation.json;
    if (transport.rank() == 0 && !table_follows) {
      if (result.finished_before) {
        PrintFinishedRun(std::cout, config.output, invocation.json);
      } else {
        PrintTrainResult(std::cout, result.summary, config.output, invocation.json);
      }
      std::cout.flush();  // the next seed's run may end this process
    }
    // Under a supervisor, the supervisor prints this.
    if (transport.rank() == 0 && result.code == ExitCode::kStopped && StatusFolder().empty()) {
      const RunConfig& named = config.output_has_time || !before ? config : *before;
      log::Info("{}", StoppedText(result.summary.step.value_or(0), ResumeOptions(named)));
    }
    return static_cast<int>(result.code);
  });
}

// Returns the arguments of the ranks: those of this process, with output and seed fixed.
std::vector<std::string> RankArguments(const TrainOptions& options, const std::string& output,
                                       std::optional<uint64_t> seed, bool json) {
  TrainOptions elsewhere = options;
  elsewhere.output.clear();
  ConfigOptions config = elsewhere.Effective();
  if (seed) config.overrides.push_back(fmt::format("seed={}", *seed));
  std::vector<std::string> arguments = config.Arguments();
  arguments.insert(arguments.begin(), "train");
  arguments.insert(arguments.end(), {"--output", output, "--resume", options.request.resume});
  if (!options.request.weights.empty()) {
    arguments.insert(arguments.end(), {"--weights", options.request.weights});
  }
  const std::vector<std::string> log_arguments = LogArguments();
  arguments.insert(arguments.end(), log_arguments.begin(), log_arguments.end());
  // otherwise the table of all seeds is the result
  if (json && !seed) arguments.emplace_back("--json");
  return arguments;
}

// Executes one run, under a supervisor if there are several ranks.
int TrainOnce(const TrainOptions& options, const Invocation& invocation, const RunConfig& config,
              const std::string& output, std::optional<uint64_t> seed) {
  const int ranks = PlacementOf(config).ranks();
  if (ranks > 1 || !options.hosts.empty()) {
    RefusePipes({options.config.file, config.model.file});
    SupervisorOptions supervisor;
    if (!options.hosts.empty()) supervisor.hosts = ParseHosts(options.hosts);
    supervisor.ranks = ranks;
    supervisor.arguments = RankArguments(options, output, seed, invocation.json);
    supervisor.max_restarts = options.max_restarts;
    supervisor.stall_seconds = config.stall_seconds;
    supervisor.newest_checkpoint = [&output] {
      const auto files = CheckpointFolder(RunFolder(output).checkpoints(), 1).List();
      return files.empty() ? "" : files.front().filename().string();
    };
    supervisor.resume = ResumeOptions(config);
    return Supervise(supervisor);
  }
  if (options.max_restarts > 0) {
    log::Warning(
        "--max-restarts does nothing for a run of one rank: no process is left to restart it");
  }
  TrainOptions alone = options;
  alone.output = output;
  if (seed) alone.config.overrides.push_back(fmt::format("seed={}", *seed));
  return TrainAsRank(alone, invocation, config);
}

int TrainSeeds(const TrainOptions& options, const Invocation& invocation, const RunConfig& config) {
  std::vector<std::string> outputs;
  for (const uint64_t seed : options.seeds) {
    const std::string output = fmt::format("{}/seed-{}", config.output, seed);
    const int code = TrainOnce(options, invocation, config, output, seed);
    if (code != 0) return code;
    outputs.push_back(output);
  }
  PrintSeedTable(std::cout, outputs, invocation.json);
  return 0;
}

// Returns the host of each rank; the hosts of --hosts are filled one after the other.
std::vector<std::string> HostsOfRanks(const TrainOptions& options, int ranks) {
  if (options.hosts.empty())
    return std::vector<std::string>(static_cast<size_t>(ranks), HostName());
  std::vector<std::string> hosts;
  for (const HostSlots& host : ParseHosts(options.hosts)) {
    hosts.insert(hosts.end(), static_cast<size_t>(host.slots), host.host);
  }
  hosts.resize(static_cast<size_t>(ranks));
  return hosts;
}

// Returns the CPUs of the ranks without asking them: assumes that all hosts equal this one.
std::vector<RankCpus> AssumedCpus(const RunConfig& config) {
  const std::vector<int> cpus = UsableCpus();
  std::vector<RankCpus> ranks;
  for (const int host : config.rank_hosts) ranks.push_back({host, cpus});
  return ranks;
}

// Prints the dry run of a run whose ranks are on these hosts.  `cpus` are those of the ranks; none if they were not
// asked.
int TellDryRun(TrainOptions options, const Invocation& invocation, RunConfig config,
               const std::vector<std::string>& hosts, const std::vector<RankCpus>& cpus) {
  TellOfFreshStart(config, options.request);
  if (config.output_has_time) config.output = OwnFolderName(config.output);
  if (!options.seeds.empty()) {
    options.output = fmt::format("{}/seed-{}", config.output, options.seeds[0]);
    options.config.overrides.push_back(fmt::format("seed={}", options.seeds[0]));
    config = LoadConfig(options.Effective(), &config);
  }
  PlaceOnHosts(hosts, config);
  DryRun run = MakeDryRun(config, options.request, cpus.empty() ? AssumedCpus(config) : cpus);
  const FirstSteps steps = TimeFirstSteps(run);
  const std::vector<std::string> arguments = options.Effective().Arguments();
  DryRunWords words{.check = "dtrain check", .hosts = options.hosts};
  for (const std::string& argument : arguments) words.check += " " + ShellWord(argument);
  words.runs = std::max<int64_t>(static_cast<int64_t>(options.seeds.size()), 1);
  (invocation.json ? PrintDryRunJson : PrintDryRun)(std::cout, run, steps, words);
  return 0;
}

// Makes the dry run in one process, for all the ranks that the run would have.
int DryRunAlone(const TrainOptions& options, const Invocation& invocation,
                const RunConfig& config) {
  return TellDryRun(options, invocation, config, HostsOfRanks(options, PlacementOf(config).ranks()),
                    {});
}

// Makes the dry run in a launcher's rank.  Rank 0 does the work; the others only report their hosts and CPUs.
int DryRunAsRank(TrainOptions options, const Invocation& invocation, Transport& transport) {
  RunConfig config;
  TryTogether(transport, [&] { config = ConfigForRanks(options, nullptr, transport.size()); });
  const std::vector<std::string> hosts = Gather(transport, HostName());
  const std::vector<RankCpus> cpus = GatherCpus(transport);
  if (transport.rank() != 0) return 0;
  options.workers = static_cast<int>(config.workers);
  return TellDryRun(options, invocation, std::move(config), hosts, cpus);
}

int DryRunInLaunch(const TrainOptions& options, const Invocation& invocation) {
  return RunOnRanks(invocation.argc, invocation.argv, [&](World& world) {
    if (world.transport().size() > 1) return DryRunAsRank(options, invocation, world.transport());
    const RunConfig config = LoadConfig(options.Effective());
    RefuseDeaths(config.cluster.deaths);
    return DryRunAlone(options, invocation, config);
  });
}

// True if the ranks of the run are those that a launcher started.  A launch of one rank may be a shell's (mpirun -n 1
// bash, srun --pty bash): where --workers asks for more, they are started on this machine.
bool LauncherStartsRanks(const TrainOptions& options) {
  if (!InsideMpiLaunch()) return false;
  return options.workers <= 1 || RanksOfLaunch() != 1 || !StatusFolder().empty();
}

// Refuses options that contradict each other, and warns of those that have no effect.
void CheckOptions(const TrainOptions& options) {
  const std::string& resume = options.request.resume;
  if (!options.request.weights.empty() && resume != "none" && resume != "auto") {
    throw UsageError(
        "--resume " + ShellWord(resume) +
            " goes on with the weights of that checkpoint, --weights begins with others",
        "give one of the two: --weights for a new run, --resume to go on with one");
  }
  if (options.max_restarts > 0 && LauncherStartsRanks(options) &&
      RankOf(::getpid()).value_or(0) == 0) {
    log::Warning(
        "--max-restarts does nothing under a launcher of your own: start the command again "
        "with --resume auto");
  }
}

int RunTrain(const TrainOptions& given, const Invocation& invocation) {
  CheckOptions(given);
  LimitSpinning(invocation.argv);
  OutliveReaders();
  if (LauncherStartsRanks(given)) {
    if (!given.hosts.empty()) {
      throw UsageError("--hosts starts the ranks itself and needs no launcher",
                       "leave mpirun or srun out, or name the hosts to it");
    }
    if (!given.seeds.empty()) {
      throw UsageError("--seeds starts one run after the other and needs no launcher",
                       "leave mpirun or srun out, or start one seed with --set seed=N");
    }
    return given.dry_run ? DryRunInLaunch(given, invocation)
                         : TrainAsRank(given, invocation, std::nullopt);
  }
  RefuseRepeated(given.seeds);
  TrainOptions options = given;
  RunConfig config = LoadConfig(options.Effective());
  if (!options.hosts.empty()) FillHosts(options, config);
  RefuseDeaths(config.cluster.deaths);
  // The hosts are checked once, however many runs there are.
  if (!options.hosts.empty()) CheckHosts(ParseHosts(options.hosts), ProgramFile().string());
  if (options.dry_run) return DryRunAlone(options, invocation, config);
  TellOfFreshStart(config, options.request);
  const OwnFolder own(config);
  if (!options.seeds.empty()) return TrainSeeds(options, invocation, config);
  return TrainOnce(options, invocation, config, config.output, std::nullopt);
}

}  // namespace

static void AddTrainCommand(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<TrainOptions>();
  CLI::App* command = AddCommand(app, invocation, "train", "train a model",
                                 [options, &invocation] { return RunTrain(*options, invocation); });
  AddConfigOptions(*command, options->config);
  command
      ->add_option("--workers", options->workers,
                   "number of worker processes (default: cluster.workers)")
      ->check(CLI::Range(1, 65536));
  command
      ->add_option_function<std::string>(
          "--hosts",
          [options](const std::string& hosts) {
            ParseHosts(hosts);
            options->hosts = hosts;
          },
          "start the ranks on these machines by mpirun and ssh, each with its number of ranks "
          "(a:4,b:4); without --workers, use all of them")
      ->type_name("HOSTS");
  command->add_option("--seeds", options->seeds, "run once for each seed, then print a table")
      ->delimiter(',');
  command->add_option("--output", options->output, "run folder for results and checkpoints")
      ->type_name("DIR");
  command
      ->add_option("--resume", options->request.resume,
                   "auto: continue from the newest checkpoint of the run folder; or a checkpoint "
                   "(default: none)")
      ->type_name("auto|none|PATH");
  command
      ->add_option("--weights", options->request.weights,
                   "initial weights: a checkpoint, a run folder or a safetensors file")
      ->type_name("FILE");
  command->add_flag(
      "--dry-run", options->dry_run,
      "check everything up to the first step, time a few steps, print a summary and exit; "
      "writes nothing");
  command
      ->add_option("--max-restarts", options->max_restarts,
                   "restart from the last checkpoint up to N times when a worker is lost")
      ->check(CLI::NonNegativeNumber);
}

DTRAIN_COMMAND("train", 10, AddTrainCommand);

}  // namespace dtrain
