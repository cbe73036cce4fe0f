// `dtrain slurm`: prints the batch script that trains a config under Slurm.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/cli/command.h"
#include "framework/core/file.h"
#include "framework/core/log.h"
#include "framework/core/printable.h"
#include "framework/core/process.h"
#include "framework/launch/slurm_script.h"
#include "framework/setup/run_exchange.h"
#include "framework/setup/run_setup.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

struct SlurmOptions {
  ConfigOptions config;
  int workers = 0;     // 0: the config's
  std::string output;  // "": stdout
  SlurmJob job;
};

SlurmJob JobOf(const SlurmOptions& options) {
  ConfigOptions effective = options.config;
  effective.SetWorkers(options.workers);
  const RunConfig config = LoadConfig(effective);
  RefuseDeaths(config.cluster.deaths);
  ReadModel(config);
  SlurmJob job = options.job;
  job.name = SlurmJobName(fs::path(options.config.file).stem().string());
  job.program = ProgramFile().string();
  job.train = options.config.Arguments();
  job.workers = static_cast<int>(config.workers);
  job.servers = PlacementOf(config).ranks() - job.workers;
  job.per_node = config.cluster.per_node();
  job.threads = static_cast<int>(config.threads);
  job.on_gpu = config.device != "cpu";  // auto takes a GPU that the job gives
  return job;
}

// True if the path lies in /tmp, /var/tmp or $TMPDIR: folders that each node has for itself, and that are emptied.
bool IsTemporary(const fs::path& path) {
  std::vector<fs::path> folders = {"/tmp", "/var/tmp"};
  if (const char* const folder = std::getenv("TMPDIR"); folder != nullptr && *folder == '/') {
    folders.emplace_back(folder);
  }
  std::error_code ignored;
  const std::string file = fs::weakly_canonical(path, ignored).string();
  return std::ranges::any_of(folders, [&](const fs::path& folder) {
    const std::string resolved = fs::weakly_canonical(folder, ignored).string();
    return resolved != "/" && file.starts_with(resolved.ends_with('/') ? resolved : resolved + "/");
  });
}

// Warns of what is allowed, but probably not meant.
void Warn(const SlurmJob& job) {
  if (IsTemporary(job.program)) {
    log::Warning(
        "the job starts {}, which is in a temporary folder: other nodes do not see it, and it may "
        "be gone by then; install dtrain in a folder that all nodes share",
        job.program);
  }
  if (job.shared && job.threads == 0) {
    log::Warning(
        "--no-exclusive without the key threads: a rank has as many CPUs as Slurm gives a task, "
        "often one; --set threads=N asks for N");
  }
}

// A config named by mistake would be lost.
void RefuseUnlessScript(const std::string& output) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(output, ignored)) return;
  if (const std::string there = ReadFile(output); there.empty() || there.starts_with("#!")) return;
  throw UsageError(output + " is there, and is no script", "choose another --output");
}

int PrintScript(const SlurmOptions& options, bool json) {
  const SlurmJob job = JobOf(options);
  Warn(job);
  const std::string script = SlurmScript(job);
  if (!options.output.empty()) {
    RefuseUnlessScript(options.output);
    WriteOutput(options.output, script);
    log::Info("the script is in {}", options.output);
  }
  if (json) {
    const SlurmNodes nodes = NodesOf(job);
    std::cout << JsonText(nlohmann::ordered_json{{"nodes", nodes.total()},
                                                 {"per_node", nodes.per_node},
                                                 {"ranks", job.workers + job.servers},
                                                 {"script", script}},
                          2)
              << "\n";
  } else if (options.output.empty()) {
    std::cout << script;
  }
  return 0;
}

void AddSiteOption(CLI::App& command, const std::string& name, std::string& value,
                   const std::string& help, const std::string& type) {
  command.add_option(name, value, help + " (default: the cluster's default)")->type_name(type);
}

}  // namespace

static void AddSlurmCommand(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<SlurmOptions>();
  CLI::App* command =
      AddCommand(app, invocation, "slurm", "print a batch script that trains under Slurm",
                 [options, &invocation] { return PrintScript(*options, invocation.json); });
  AddConfigOptions(*command, options->config);
  command->add_option("--workers", options->workers, "number of workers (default: cluster.workers)")
      ->check(CLI::Range(1, 65536));
  SlurmJob& job = options->job;
  command->add_option("--nodes", job.nodes, "number of nodes (default: workers / cluster.per_node)")
      ->check(CLI::Range(1, 65536));
  command->add_option("--time", job.time, "time limit of the job")
      ->capture_default_str()
      ->type_name("TIME");
  AddSiteOption(*command, "--partition", job.partition, "partition", "NAME");
  AddSiteOption(*command, "--account", job.account, "account to charge", "NAME");
  AddSiteOption(*command, "--qos", job.qos, "quality of service", "NAME");
  AddSiteOption(*command, "--mem", job.memory, "memory of a node, as in 64G", "SIZE");
  AddSiteOption(*command, "--gres", job.gres, "resources of a node, as in gpu:4", "LIST");
  AddSiteOption(*command, "--constraint", job.constraint, "features of the nodes, as in skylake",
                "LIST");
  AddSiteOption(*command, "--mail-type", job.mail_type, "events that send mail, as in END,FAIL",
                "LIST");
  AddSiteOption(*command, "--mail-user", job.mail_user, "address for this mail", "ADDRESS");
  command->add_flag("--no-exclusive", job.shared,
                    "let other jobs use the nodes as well (without threads in the config, the job "
                    "has its nodes for itself)");
  command->add_option("--module", job.modules, "load this module first (repeatable)")
      ->type_name("NAME")
      ->take_all()
      ->allow_extra_args(false);
  command->add_option("--launcher", job.launcher, "program that starts the ranks")
      ->capture_default_str()
      ->type_name("srun|yhrun|mpirun");
  command->add_flag("--servers-apart", job.servers_apart,
                    "put the parameter servers on nodes of their own");
  command
      ->add_option("--output", options->output, "write the script to this file instead of stdout")
      ->type_name("FILE");
}

DTRAIN_COMMAND("slurm", 70, AddSlurmCommand);

}  // namespace dtrain
