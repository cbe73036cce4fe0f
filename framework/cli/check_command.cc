// `dtrain check`: validates a config and its model, and prints the effective config.
#include <CLI/CLI.hpp>

#include <iostream>

#include "framework/cli/command.h"
#include "framework/core/log.h"
#include "framework/setup/run_setup.h"
#include "framework/setup/schedule_profile.h"

namespace dtrain {

static void AddCheckCommand(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<ConfigOptions>();
  CLI::App* command = AddCommand(
      app, invocation, "check", "validate a config and print it with all defaults filled in",
      [options, &invocation] {
        const RunConfig config = LoadConfig(*options);
        const Graph graph = ReadModel(config);
        CheckProfile(config, graph);
        if (config.plan_is_file()) ReadPlan(config.plan);
        for (const std::string& warning : config.warnings) log::Warning("{}", warning);
        TellModel(graph);
        for (const std::string& note : config.notes) log::Info("{}", note);
        std::cout << (invocation.json ? config.effective_json : config.effective_yaml);
        return 0;
      });
  AddConfigOptions(*command, *options);
}

DTRAIN_COMMAND("check", 80, AddCheckCommand);

}  // namespace dtrain
