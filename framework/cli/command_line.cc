
#include <CLI/CLI.hpp>

#include <iostream>
#include <map>

#include "framework/cli/command.h"
#include "framework/cli/standard_streams.h"
#include "framework/core/error.h"
#include "framework/core/process.h"
#include "framework/runtime/launch/world.h"
#include "framework/runtime/setup/locate_model.h"
#include "framework/runtime/weights/weights_file.h"

namespace dtrain {
namespace {

int Run(Invocation& invocation) {
  try {
    return invocation.run();
  } catch (const Error& error) {
    TellError(error);
    return static_cast<int>(error.code());
  } catch (const std::exception& exception) {
    const Error error = AsError(exception);
    TellError(error);
    return static_cast<int>(error.code());
  }
}

}  // namespace

CLI::App* AddCommand(CLI::App& app, Invocation& invocation, const std::string& name,
                     const std::string& help, std::function<int()> run) {
  CLI::App* command = app.add_subcommand(name, help);
  command->add_flag("--json", invocation.json, "the result alone on stdout, as JSON");
  command->final_callback([&invocation, run = std::move(run)] { invocation.run = run; });
  return command;
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

void AddConfigOptions(CLI::App& command, ConfigOptions& options) {
  command.add_option("--config", options.file, "the run's YAML file")
      ->required()
      ->type_name("FILE");
  AddSettingOptions(command, options);
}

void AddOptionalConfigOptions(CLI::App& command, ConfigOptions& options) {
  command
      .add_option("--config", options.file,
                  "a run's YAML file; by default the config that the checkpoint brings")
      ->type_name("FILE");
  AddSettingOptions(command, options);
}

void AddSettingOptions(CLI::App& command, ConfigOptions& options) {
  command
      .add_option("--cluster", options.cluster,
                  "use the keys of this cluster of configs/clusters, or of this file, in section "
                  "cluster")
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
                  "compute on this device: cpu, cuda (a GPU), or auto, which says what it takes")
      ->type_name("DEVICE")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}));
}

void AddSearchOptions(CLI::App& command, SearchOptions& options) {
  command.add_option("--beam", options.beam, "hypotheses that beam search keeps; 1: greedy search")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  command.add_option("--max-length", options.max_length, "words of a translation at most")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000));
}

RunConfig LoadConfig(const ConfigOptions& options) {
  config::Document document =
      config::Document::FromFile(options.file, options.Settings(), options.overlay());
  return ReadRunConfig(document);
}

RunConfig LoadConfigOf(const ConfigOptions& options, const std::filesystem::path& checkpoint) {
  if (!options.file.empty()) return LoadConfig(options);
  const CheckpointInfo info = ReadStoredInfo(checkpoint);
  if (info.config_yaml.empty()) {
    throw UsageError(checkpoint.string() + " brings no config", "give --config");
  }
  config::Document document =
      config::Document::FromText(info.config_yaml, checkpoint.string() + ": its config",
                                 options.Settings(), options.overlay());
  return info.model_yaml.empty() ? ReadRunConfig(document)
                                 : ReadRunConfig(document, info.model_yaml);
}

int RunCommandLine(int argc, char** argv) {
  OpenStandardStreams();
  LocateOwnMpi();
  CLI::App app("dtrain trains a model with any of the published gradient-exchange protocols.",
               "dtrain");
  app.set_version_flag("--version", "dtrain " + Version() + " (" + SourceRevision() + ")");
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  Invocation invocation;
  invocation.argc = argc;
  invocation.argv = argv;
  std::multimap<int, const CommandEntry*> commands;
  for (const auto& [name, command] : CommandRegistry::All()) {
    commands.insert({command.position, &command});
  }
  for (const auto& [position, command] : commands) command->add(app, invocation);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error, std::cout, std::cerr);
    return FinishStdout(code == 0 ? 0 : static_cast<int>(ExitCode::kUsage));
  }
  return FinishStdout(Run(invocation));
}

}  // namespace dtrain
