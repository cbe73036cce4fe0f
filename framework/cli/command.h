// Declares the shared parts of the commands: registration on the command line, common options, and reading of the
// config.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/core/registry.h"
#include "framework/evaluate/translator.h"
#include "framework/setup/run_config.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace dtrain {

// The arguments of the process and what the command line asks for.  It is filled while the command line is parsed.
struct Invocation {
  int argc = 0;
  char** argv = nullptr;
  bool json = false;         // --json: stdout carries only the result, as JSON
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

// Adds a subcommand with --json, -v and -q.  When it is chosen, its `run` becomes `invocation.run`.
CLI::App* AddCommand(CLI::App& app, Invocation& invocation, const std::string& name,
                     const std::string& help, std::function<int()> run);

// Returns the -v and -q arguments that give a child process of this program the same log level as this process.
std::vector<std::string> LogArguments();

// --config F, --cluster NAME, --set k.ey=v and --device D.
struct ConfigOptions {
  std::string file;  // path of the config
  std::vector<std::string> overrides;
  std::string cluster = {};  // a name or a path; "": the config's own `cluster` section
  std::string device = {};   // "": the config's own device

  // Maps each override that was not given by --set to the option that it was given by.
  config::Options options = {};

  // Adds an override that a command line option stands for ("--workers 2").  Error messages then name that option.
  void Set(const std::string& setting, const std::string& option);
  void SetWorkers(int workers);  // the value of --workers; 0: it was not given
  // Returns the arguments that pass the same settings to another process of this program.
  std::vector<std::string> Arguments() const;
  // Returns the overrides, including the one for the device.
  std::vector<std::string> Settings() const;
  config::Overlay overlay() const;  // throws ConfigError if the cluster does not exist
};
// Adds --config only.  Its value is a path, or a name that LocateConfig finds.
CLI::Option* AddConfigOption(CLI::App& command, std::string& file, const std::string& help);
void AddConfigOptions(CLI::App& command, ConfigOptions& options);
// Adds the same options, with --config optional: for commands with --weights, whose file may contain the config
// (LoadConfigOf).
void AddOptionalConfigOptions(CLI::App& command, ConfigOptions& options);
// Adds all of the options except --config.
void AddSettingOptions(CLI::App& command, ConfigOptions& options);

// Adds --device D only, for a command without a config.
void AddDeviceOption(CLI::App& command, std::string& device);

// Adds --beam K and --max-length N, for commands that translate.
void AddSearchOptions(CLI::App& command, SearchOptions& options);

// Checks --seeds.  Throws UsageError if a seed is given twice: the second run would repeat the first, and its folder
// would already be taken.
void RefuseRepeated(const std::vector<uint64_t>& seeds);

// Reads and checks the config.  Throws ConfigError with all errors of the config.  `before` is a config with the same
// model and data, which are taken from it and not read again; it may be null.
RunConfig LoadConfig(const ConfigOptions& options, const RunConfig* before = nullptr);
// Returns the config and the model of the run that wrote this checkpoint, for a command without --config.  Throws
// UsageError if the file does not contain them.
RunConfig LoadConfigOf(const ConfigOptions& options, const std::filesystem::path& checkpoint);

// Returns the names that `dtrain list WHAT` shows; none for an unknown word.  Throws ConfigError if there are no models.
std::vector<std::string> NamesListed(const std::string& what);

// Throws UsageError if one of the files is a pipe.  A pipe can be read only once, and the commands that call this
// function start other processes that must read the same files.
void RefusePipes(const std::vector<std::string>& files);

// Runs the program and returns its exit code (README, "Exit codes").  Catches all exceptions and prints errors to
// stderr with their hint.
int RunCommandLine(int argc, char** argv);

}  // namespace dtrain

#define DTRAIN_COMMAND(name, position, add)                     \
  [[maybe_unused]] static const bool add##_command_registered = \
      ::dtrain::CommandRegistry::Add(name, {position, add})
