// `dtrain export`: converts saved weights to another format.
#include <CLI/CLI.hpp>

#include <iostream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/checkpoint/weights_file.h"
#include "framework/cli/command.h"
#include "framework/core/error.h"
#include "framework/core/printable.h"
#include "framework/core/text.h"
#include "framework/onnx/export/onnx_export.h"
#include "framework/onnx/file/onnx_file.h"

namespace dtrain {
namespace {

struct ExportOptions {
  std::string weights;
  std::string format;  // "": chosen by the extension of `output`
  std::string output;
};

struct Ending {
  const char* ending;
  const char* format;
};
constexpr Ending kEndings[] = {
    {".safetensors", "safetensors"}, {".onnx", "onnx"}, {".h5", "hdf5"}, {".hdf5", "hdf5"}};

// Returns the format of a file.  Throws UsageError for an ending that belongs to none: another program would fail to
// read the file, or read it as something else.
std::string FormatOf(const ExportOptions& options) {
  if (!options.format.empty()) return options.format;
  const std::string own = std::filesystem::path(options.output).extension();
  if (own.empty()) return NameOf(WeightsFormat::kSafetensors);
  std::vector<std::string> known;
  for (const auto& [ending, format] : kEndings) {
    if (own == ending) return format;
    if (format != std::string("onnx") || HasOnnx()) known.emplace_back(ending);
  }
  throw UsageError(
      fmt::format("--output {}: dtrain export writes no files that end in {}", options.output, own),
      fmt::format("it writes {}; or name the format with --format", Join(known)));
}

// Writes the weights.  Returns the files that were written.
std::vector<std::filesystem::path> Write(const std::string& output, const std::string& format,
                                         const StoredWeights& stored,
                                         const std::filesystem::path& from) {
  if (format == "onnx") return WriteOnnx(output, OnnxOf(stored, from.string()));
  const bool hdf5 = format == NameOf(WeightsFormat::kHdf5);
  WriteStoredWeights(output, hdf5 ? WeightsFormat::kHdf5 : WeightsFormat::kSafetensors, stored);
  return {output};
}

int Export(const ExportOptions& options, bool json) {
  const std::string format = FormatOf(options);
  const std::filesystem::path from = FindWeights(options.weights);
  const StoredWeights stored = ReadStoredWeights(from);
  const int64_t parameters = stored.layout.parameters.size();
  std::vector<std::string> written;
  for (const auto& path : Write(options.output, format, stored, from))
    written.push_back(path.string());
  if (json) {
    std::cout << JsonText(nlohmann::json{{"from", from.string()},
                                         {"output", written[0]},
                                         {"outputs", written},
                                         {"format", format},
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
                               "weights, for other programs (default: by the ending of --output; "
                               "safetensors if it has none)"
                             : "safetensors (PyTorch's names) or hdf5 (default: by the ending of "
                               "--output; safetensors if it has none)")
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
