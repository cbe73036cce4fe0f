// What the commands share: how one adds itself to the command line, and how it reads a config.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/core/registry.h"
#include "framework/runtime/judge/translator.h"
#include "framework/runtime/setup/run_config.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace dtrain {

// The process's own arguments, and what the command line asks for; filled while it is parsed.
struct Invocation {
  int argc = 0;
  char** argv = nullptr;
  bool json = false;         // --json: the result alone on stdout, as JSON
  std::function<int()> run;  // set by the chosen command; returns the exit code
};

// A command adds itself by one line, in <name>_command.cc:
//
//   DTRAIN_COMMAND("check", 80, AddCheckCommand);
struct CommandEntry {
  int position;  // in --help, ascending
  void (*add)(CLI::App& app, Invocation& invocation);
};
using CommandRegistry = Registry<CommandEntry>;

// A subcommand with --json, -v and -q, whose `run` the invocation gets when it is chosen.
CLI::App* AddCommand(CLI::App& app, Invocation& invocation, const std::string& name,
                     const std::string& help, std::function<int()> run);

// The arguments that let another process of this program tell as much as this one: -v and -q.
std::vector<std::string> LogArguments();

// --config F, --cluster NAME, --set k.ey=v and --device D.
struct ConfigOptions {
  std::string file;
  std::vector<std::string> overrides;
  std::string cluster = {};  // a name or a path; "": the config's own section
  std::string device = {};   // "": the config's

  config::Options options = {};  // what overrides were given as, where it is no --set

  // An override that an `option` of its own stands for ("--workers 2"): messages name that.
  void Set(const std::string& setting, const std::string& option);
  void SetWorkers(int workers);  // what --workers is; 0: it was not given
  // The arguments that say the same to another process.
  std::vector<std::string> Arguments() const;
  // The overrides, the device among them.
  std::vector<std::string> Settings() const;
  config::Overlay overlay() const;  // throws ConfigError for a cluster that is not there
};
// --config alone: a path, or a name that LocateConfig finds.
CLI::Option* AddConfigOption(CLI::App& command, std::string& file, const std::string& help);
void AddConfigOptions(CLI::App& command, ConfigOptions& options);
// The same for a command that has --weights, whose file may bring the config (LoadConfigOf).
void AddOptionalConfigOptions(CLI::App& command, ConfigOptions& options);
// All but --config.
void AddSettingOptions(CLI::App& command, ConfigOptions& options);

// --device D alone, for a command without a config.
void AddDeviceOption(CLI::App& command, std::string& device);

// --beam K and --max-length N, for commands that translate.
void AddSearchOptions(CLI::App& command, SearchOptions& options);

// For --seeds: a second run of a seed tells nothing, and would be refused the folder of the first.  Throws UsageError.
void RefuseRepeated(const std::vector<uint64_t>& seeds);

// Reads and checks the config, throwing ConfigError with all its errors.  `before`: the same config with the same
// model and data, which are not read again; null: there is none.
RunConfig LoadConfig(const ConfigOptions& options, const RunConfig* before = nullptr);
// Where no --config was given: the config, and the model, of the run that wrote this checkpoint.  Throws UsageError
// where the file brings none.
RunConfig LoadConfigOf(const ConfigOptions& options, const std::filesystem::path& checkpoint);

// Throws UsageError where one of the files is a pipe: a command that starts other processes with the same options has
// read what they would have to read.
void RefusePipes(const std::vector<std::string>& files);

// Runs the program and returns its exit code (README, "Exit codes").  Catches everything: errors
// are told on stderr with their hint.
int RunCommandLine(int argc, char** argv);

}  // namespace dtrain

#define DTRAIN_COMMAND(name, position, add)                     \
  [[maybe_unused]] static const bool add##_command_registered = \
      ::dtrain::CommandRegistry::Add(name, {position, add})
