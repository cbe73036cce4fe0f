
#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>
#include <map>
#include <optional>

#include "framework/checkpoint/weights_file.h"
#include "framework/cli/command.h"
#include "framework/cli/help_formatter.h"
#include "framework/cli/standard_streams.h"
#include "framework/cli/usage_errors.h"
#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/core/printable.h"
#include "framework/core/process.h"
#include "framework/launch/world.h"
#include "framework/setup/locate_model.h"

namespace dtrain {
namespace {

int Tell(const Error& error) {
  TellError(error);
  return static_cast<int>(error.code());
}

// True if the words have --json.  It is looked for before they are parsed, since errors of parsing are JSON too.
bool AsksForJson(const std::vector<std::string>& words) {
  const auto end = std::ranges::find(words, "--");  // positional arguments follow
  return std::find(words.begin(), end, "--json") != end;
}

// An unset variable of a shell script would make a folder of another name.
std::optional<UsageError> FindEmptyOutput(const std::vector<std::string>& words) {
  const auto at = std::ranges::find(words, "--output");
  const bool next_is_empty = at != words.end() && at + 1 != words.end() && (at + 1)->empty();
  if (!next_is_empty && std::ranges::find(words, "--output=") == words.end()) return std::nullopt;
  return UsageError("--output is empty", "give a name, or leave --output out");
}

// Parses the command line.  Returns the exit code if there is nothing to run: after --help or an error.  A misspelt
// name is reported first, since other errors may follow from it.
std::optional<int> Parse(CLI::App& app, const Invocation& invocation) {
  const std::vector<std::string> words(invocation.argv + 1, invocation.argv + invocation.argc);
  try {
    if (const auto error = FindEmptyOutput(words)) return Tell(*error);
    app.parse(invocation.argc, invocation.argv);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error, std::cout, std::cerr);
    if (const auto error = FindUsageError(app, words)) return Tell(*error);
    if (AsksForJson(words)) return Tell(UsageError(error.what(), "--help shows all options"));
    app.exit(error, std::cout, std::cerr);
    return static_cast<int>(ExitCode::kUsage);
  } catch (const Error&) {
    if (const auto error = FindUsageError(app, words)) return Tell(*error);
    throw;
  }
}

int ParseAndRun(int argc, char** argv) {
  CLI::App app("dtrain trains a model with many published gradient-exchange protocols.", "dtrain");
  app.set_version_flag("--version", "dtrain " + VersionAndRevision());
  app.require_subcommand(1);
  app.formatter(MakeHelpFormatter());
  Invocation invocation;
  invocation.argc = argc;
  invocation.argv = argv;
  TellErrorsAsJson(AsksForJson({argv + 1, argv + argc}));
  std::multimap<int, const CommandEntry*> commands;
  for (const auto& [name, command] : CommandRegistry::All()) {
    commands.insert({command.position, &command});
  }
  for (const auto& [position, command] : commands) command->add(app, invocation);
  if (const auto code = Parse(app, invocation)) return *code;
  return invocation.run();
}

// Catches errors here too: memory may run out before a command begins.
int RunOrTell(int argc, char** argv) {
  try {
    return ParseAndRun(argc, argv);
  } catch (const Error& error) {
    return Tell(error);
  } catch (const std::exception& exception) {
    return Tell(AsError(exception));
  }
}

// Makes unprintable characters visible in all output: names of classes, files and columns are printed as they are in
// the data.
int RunPrintable(int argc, char** argv) {
  const PrintableOutput out(std::cout), err(std::cerr);
  return RunOrTell(argc, argv);
}

}  // namespace

CLI::App* AddCommand(CLI::App& app, Invocation& invocation, const std::string& name,
                     const std::string& help, std::function<int()> run) {
  CLI::App* command = app.add_subcommand(name, help);
  command->add_flag("--json", invocation.json, "print only the result on stdout, as JSON");
  CLI::Option* const verbose = command->add_flag_callback(
      "-v,--verbose", [] { log::SetLevel(log::Level::kDebug); }, "print more on stderr");
  command
      ->add_flag_callback(
          "-q,--quiet", [] { log::SetLevel(log::Level::kWarning); },
          "print only warnings and errors on stderr")
      ->excludes(verbose);
  command->final_callback([&invocation, run = std::move(run)] { invocation.run = run; });
  return command;
}

std::vector<std::string> LogArguments() {
  if (log::GetLevel() == log::Level::kDebug) return {"--verbose"};
  if (log::GetLevel() == log::Level::kWarning) return {"--quiet"};
  return {};
}

void ConfigOptions::Set(const std::string& setting, const std::string& option) {
  overrides.push_back(setting);
  options[setting] = option;
}

void ConfigOptions::SetWorkers(int workers) {
  if (workers == 0) return;
  Set(fmt::format("cluster.workers={}", workers), fmt::format("--workers {}", workers));
}

std::vector<std::string> ConfigOptions::Arguments() const {
  std::vector<std::string> arguments = {"--config", file};
  if (!cluster.empty()) arguments.insert(arguments.end(), {"--cluster", cluster});
  for (const std::string& setting : overrides) {
    arguments.insert(arguments.end(), {"--set", setting});
  }
  if (!device.empty()) arguments.insert(arguments.end(), {"--device", device});
  return arguments;
}

std::vector<std::string> ConfigOptions::Settings() const {
  std::vector<std::string> settings = overrides;
  if (!device.empty()) settings.push_back("device=" + device);
  return settings;
}

config::Overlay ConfigOptions::overlay() const {
  if (cluster.empty()) return {};
  return {LocateCluster(cluster, file).string(), "cluster"};
}

CLI::Option* AddConfigOption(CLI::App& command, std::string& file, const std::string& help) {
  return command
      .add_option_function<std::string>(
          "--config", [&file](const std::string& given) { file = LocateConfig(given).string(); },
          help)
      ->type_name("FILE");
}

void AddConfigOptions(CLI::App& command, ConfigOptions& options) {
  AddConfigOption(command, options.file, "the run's YAML file, or the name of one of configs/runs")
      ->required();
  AddSettingOptions(command, options);
}

void AddOptionalConfigOptions(CLI::App& command, ConfigOptions& options) {
  AddConfigOption(command, options.file,
                  "a run's YAML file, or the name of one of configs/runs (default: the config in "
                  "the checkpoint)");
  AddSettingOptions(command, options);
}

void AddSettingOptions(CLI::App& command, ConfigOptions& options) {
  command
      .add_option(
          "--cluster", options.cluster,
          "take the keys of section cluster from this file, or from a cluster of configs/clusters")
      ->type_name("NAME");
  command.add_option("--set", options.overrides, "override a config key (repeatable)")
      ->type_name("KEY=VALUE")
      ->take_all()
      ->allow_extra_args(false);
  AddDeviceOption(command, options.device);
}

void AddDeviceOption(CLI::App& command, std::string& device) {
  command
      .add_option("--device", device,
                  "compute on this device: cpu, cuda (a GPU), or auto, which is the CPU")
      ->type_name("DEVICE")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}));
}

void AddSearchOptions(CLI::App& command, SearchOptions& options) {
  command.add_option("--beam", options.beam, "hypotheses that beam search keeps; 1: greedy search")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  command
      .add_option("--max-length", options.max_length, "maximum number of words of a translation")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000));
}

void RefuseRepeated(const std::vector<uint64_t>& seeds) {
  for (auto seed = seeds.begin(); seed != seeds.end(); ++seed) {
    if (std::find(seeds.begin(), seed, *seed) == seed) continue;
    throw UsageError("--seeds names " + std::to_string(*seed) + " twice", "name each seed once");
  }
}

RunConfig LoadConfig(const ConfigOptions& options, const RunConfig* before) {
  log::Debug("config {}", options.file);
  config::Document document = config::Document::FromFile(options.file, options.Settings(),
                                                         options.overlay(), options.options);
  return before == nullptr ? ReadRunConfig(document) : ReadRunConfig(document, *before);
}

void RefusePipes(const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    std::error_code ignored;
    if (!std::filesystem::is_fifo(file, ignored)) continue;
    throw UsageError(fmt::format("{} is a pipe, and every process of the run reads it", file),
                     "write it into a file");
  }
}

RunConfig LoadConfigOf(const ConfigOptions& options, const std::filesystem::path& checkpoint) {
  if (!options.file.empty()) return LoadConfig(options);
  const CheckpointInfo info = ReadStoredInfo(checkpoint);
  if (info.config_yaml.empty()) {
    throw UsageError(checkpoint.string() + " contains no config", "give --config");
  }
  config::Document document =
      config::Document::FromText(info.config_yaml, checkpoint.string() + ": its config",
                                 options.Settings(), options.overlay(), options.options);
  return info.model_yaml.empty() ? ReadRunConfig(document)
                                 : ReadRunConfig(document, info.model_yaml);
}

int RunCommandLine(int argc, char** argv) {
  OpenStandardStreams();
  log::SetLevel(log::Level::kInfo);
  LocateOwnMpi();
  return FinishStdout(RunPrintable(argc, argv));
}

}  // namespace dtrain
