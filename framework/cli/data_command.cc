// `dtrain data list|fetch|verify`: lists, downloads and verifies data sets.
#include <CLI/CLI.hpp>

#include <iostream>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/cli/command.h"
#include "framework/core/error.h"
#include "framework/core/printable.h"
#include "framework/core/status_line.h"
#include "framework/data/files/catalog.h"

namespace dtrain {
namespace {

using nlohmann::json;

struct DataOptions {
  std::string name;
  std::string root;
  std::string from;
  int stall_seconds = 30;
};

int List(const DataOptions& options, bool as_json) {
  const std::vector<DatasetStatus> sets = ListDatasets(options.root);
  if (!as_json) {
    std::cout << DatasetTable(sets);
    return 0;
  }
  json list = json::array();
  for (const DatasetStatus& set : sets) {
    list.push_back({{"name", set.name},
                    {"help", set.help},
                    {"own", set.own},
                    {"classes", set.classes},
                    {"train_samples", set.train_samples},
                    {"test_samples", set.test_samples},
                    {"files", set.files},
                    {"files_here", set.files_here},
                    {"folder", set.folder.string()}});
  }
  std::cout << JsonText(list, 2) << "\n";
  return 0;
}

int Fetch(const DataOptions& options, bool as_json) {
  const status_line::WipeOnSignal wipe;
  FetchOptions how;
  how.stall_seconds = options.stall_seconds;
  how.from = options.from;
  const std::filesystem::path folder = FetchDataset(options.name, options.root, how);
  if (as_json) {
    std::cout << JsonText(json{{"name", options.name}, {"folder", folder.string()}}, 2) << "\n";
  } else if (folder.empty()) {
    const bool own = DatasetRegistry::Get("data set", options.name).make()->is_own();
    std::cout << options.name << (own ? " takes your own files" : " is made on the spot")
              << ": there is nothing to fetch\n";
  } else {
    std::cout << options.name << " is in " << folder.string() << "\n";
  }
  return 0;
}

int Verify(const DataOptions& options, bool as_json) {
  const VerifyReport report = VerifyDataset(options.name, options.root);
  if (as_json) {
    json files = json::array();
    for (const FileStatus& file : report.files) {
      files.push_back({{"name", file.name}, {"problem", file.problem}});
    }
    std::cout << JsonText(json{{"name", report.name},
                               {"folder", report.folder.string()},
                               {"ok", report.ok()},
                               {"files", files}},
                          2)
              << "\n";
  } else {
    std::cout << VerifyText(report);
  }
  return static_cast<int>(report.ok() ? ExitCode::kDone : ExitCode::kData);
}

using DataAction = int (*)(const DataOptions&, bool);

CLI::App* AddAction(CLI::App& data, Invocation& invocation,
                    const std::shared_ptr<DataOptions>& options, const std::string& name,
                    const std::string& help, DataAction action) {
  CLI::App* command = AddCommand(data, invocation, name, help, [&invocation, options, action] {
    return action(*options, invocation.json);
  });
  command->add_option("--root", options->root, "the folder above the data set's folder")
      ->type_name("DIR");
  return command;
}

}  // namespace

static void AddDataCommand(CLI::App& app, Invocation& invocation) {
  CLI::App* data = app.add_subcommand("data", "list, download and verify data sets");
  data->require_subcommand(1);
  const auto options = std::make_shared<DataOptions>();
  AddAction(*data, invocation, options, "list", "list the data sets and where they are", &List);
  CLI::App* fetch =
      AddAction(*data, invocation, options, "fetch", "download a data set into the cache", &Fetch);
  CLI::App* verify = AddAction(*data, invocation, options, "verify",
                               "compare file sizes and SHA-256 with the publisher's", &Verify);
  fetch
      ->add_option("--stall-seconds", options->stall_seconds,
                   "seconds without data after which a download fails")
      ->check(CLI::PositiveNumber);
  fetch
      ->add_option("--from", options->from,
                   "take NAME/FILE from this server or folder instead of the publisher's server")
      ->type_name("URL|DIR");
  for (CLI::App* command : {fetch, verify}) {
    command->add_option("name", options->name, "the data set")->required();
  }
}

DTRAIN_COMMAND("data", 110, AddDataCommand);

}  // namespace dtrain
