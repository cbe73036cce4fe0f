// `dtrain export`: converts saved weights to another format.
#include <CLI/CLI.hpp>

#include <iostream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/checkpoint/weights_file.h"
#include "framework/cli/command.h"
#include "framework/core/printable.h"
#include "framework/onnx/export/onnx_export.h"
#include "framework/onnx/file/onnx_file.h"

namespace dtrain {
namespace {

struct ExportOptions {
  std::string weights;
  std::string format;  // "": chosen by the extension of `output`
  std::string output;
};

std::string FormatOf(const ExportOptions& options) {
  if (!options.format.empty()) return options.format;
  const std::string ending = std::filesystem::path(options.output).extension();
  if (ending == ".onnx") return "onnx";
  return NameOf(ending == ".h5" || ending == ".hdf5" ? WeightsFormat::kHdf5
                                                     : WeightsFormat::kSafetensors);
}

// Writes the weights.  Returns the files that were written.
std::vector<std::filesystem::path> Write(const ExportOptions& options, const StoredWeights& stored,
                                         const std::filesystem::path& from) {
  const std::string format = FormatOf(options);
  if (format == "onnx") return WriteOnnx(options.output, OnnxOf(stored, from.string()));
  const bool hdf5 = format == NameOf(WeightsFormat::kHdf5);
  WriteStoredWeights(options.output, hdf5 ? WeightsFormat::kHdf5 : WeightsFormat::kSafetensors,
                     stored);
  return {options.output};
}

int Export(const ExportOptions& options, bool json) {
  const std::filesystem::path from = FindWeights(options.weights);
  const StoredWeights stored = ReadStoredWeights(from);
  const int64_t parameters = stored.layout.parameters.size();
  std::vector<std::string> written;
  for (const auto& path : Write(options, stored, from)) written.push_back(path.string());
  if (json) {
    std::cout << JsonText(nlohmann::json{{"from", from.string()},
                                         {"output", written[0]},
                                         {"outputs", written},
                                         {"format", FormatOf(options)},
                                         {"model", stored.info.model},
                                         {"parameters", parameters},
                                         {"statistics", stored.layout.state.size()}},
                          2)
              << '\n';
  } else {
    std::cout << fmt::format("{}: {} parameters, {} batch-norm statistics of {}\n",
                             fmt::join(written, ", "), parameters, stored.layout.state.size(),
                             from.string());
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
  std::vector<std::string> formats = {"safetensors", "hdf5"};
  if (HasOnnx()) formats.emplace_back("onnx");
  command
      ->add_option("--format", options->format,
                   HasOnnx() ? "safetensors (PyTorch's names), hdf5, or onnx: the model with its "
                               "weights, for other programs (default: by the ending of --output, "
                               "else safetensors)"
                             : "safetensors (PyTorch's names) or hdf5 (default: by the ending of "
                               "--output, else safetensors)")
      ->check(CLI::IsMember(formats));
  command
      ->add_option("--output", options->output,
                   HasOnnx() ? "the file to write; as ONNX, a model for translation becomes two, "
                               "FILE.encoder.onnx and FILE.decoder.onnx"
                             : "the file to write")
      ->required()
      ->type_name("FILE");
}

DTRAIN_COMMAND("export", 50, AddExportCommand);

}  // namespace dtrain
