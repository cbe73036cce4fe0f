// `dtrain export`: saved weights in another format.
#include <CLI/CLI.hpp>

#include <iostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/cli/command.h"
#include "framework/runtime/weights/checkpoint_folder.h"
#include "framework/runtime/weights/weights_file.h"

namespace dtrain {
namespace {

struct ExportOptions {
  std::string weights;
  std::string format = "safetensors";
  std::string output;
};

int Export(const ExportOptions& options, bool json) {
  const std::filesystem::path from = FindWeights(options.weights);
  const StoredWeights stored = ReadStoredWeights(from);
  const bool hdf5 = options.format == NameOf(WeightsFormat::kHdf5);
  WriteStoredWeights(options.output, hdf5 ? WeightsFormat::kHdf5 : WeightsFormat::kSafetensors,
                     stored);
  const int64_t parameters = stored.layout.parameters.size();
  if (json) {
    std::cout << nlohmann::json{{"from", from.string()},
                                {"output", options.output},
                                {"format", options.format},
                                {"model", stored.info.model},
                                {"parameters", parameters},
                                {"statistics", stored.layout.state.size()}}
                     .dump(2)
              << '\n';
  } else {
    std::cout << fmt::format("{}: {} parameters, {} batch-norm statistics of {}\n", options.output,
                             parameters, stored.layout.state.size(), from.string());
  }
  return 0;
}

}  // namespace

static void AddExportCommand(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* command =
      AddCommand(app, invocation, "export", "convert saved weights to another format",
                 [options, &invocation] { return Export(*options, invocation.json); });
  command
      ->add_option("--weights", options->weights,
                   "a checkpoint, a run folder or a safetensors file")
      ->required()
      ->type_name("FILE");
  command->add_option("--format", options->format, "safetensors (PyTorch's names) or hdf5")
      ->check(CLI::IsMember({"safetensors", "hdf5"}))
      ->capture_default_str();
  command->add_option("--output", options->output, "the file to write")
      ->required()
      ->type_name("FILE");
}

DTRAIN_COMMAND("export", 50, AddExportCommand);

}  // namespace dtrain
