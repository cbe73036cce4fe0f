// `dtrain ckpt info|verify|diff`: looks into saved weights, of either format.
#include <CLI/CLI.hpp>

#include <iostream>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/cli/command.h"
#include "framework/core/error.h"
#include "framework/runtime/weights/checkpoint.h"
#include "framework/runtime/weights/checkpoint_folder.h"
#include "framework/runtime/weights/weights_compare.h"
#include "framework/runtime/weights/weights_file.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

struct CkptOptions {
  std::vector<std::string> files;
  bool tensors = false;
};

json TensorList(const ArenaLayout& layout) {
  json list = json::array();
  std::map<std::string, std::vector<int64_t>> by_name;
  for (const ArenaEntry& entry : layout.entries) by_name[entry.name] = entry.shape;
  for (const auto& [name, shape] : by_name) list.push_back({{"name", name}, {"shape", shape}});
  return list;
}

json InfoOf(const fs::path& path, const StoredWeights& stored, bool tensors) {
  json info = {
      {"file", path.string()},
      {"format", NameOf(stored.format)},
      {"model", stored.info.model},
      {"epoch", stored.info.position.epoch},
      {"step", stored.info.position.step},
      {"samples_applied", stored.info.position.samples_applied},
      {"source_revision", stored.info.source_revision},
      {"parameters", stored.layout.parameters.size()},
      {"statistics", stored.layout.state.size()},
      {"weights_sha256", WeightsSha256(stored.layout, stored.weights.data(), stored.state.data())}};
  if (!stored.info.plan_json.empty()) {
    info["solver"] = stored.info.solver;
    info["seed"] = stored.info.seed;
  }
  if (tensors) {
    info["tensors"] = {{"parameters", TensorList(stored.layout.parameters)},
                       {"statistics", TensorList(stored.layout.state)}};
  }
  return info;
}

void PrintTensors(const json& list) {
  for (const json& tensor : list) {
    std::cout << fmt::format("  {:<44} {}\n", tensor["name"].get<std::string>(),
                             tensor["shape"].dump());
  }
}

int Info(const CkptOptions& options, bool as_json) {
  const fs::path path = FindCheckpoint(options.files[0]);
  const json info = InfoOf(path, ReadStoredWeights(path), options.tensors);
  if (as_json) {
    std::cout << info.dump(2) << '\n';
    return 0;
  }
  for (const auto& [key, value] : info.items()) {
    if (key == "tensors") continue;
    std::cout << fmt::format("{:<16} {}\n", key,
                             value.is_string() ? value.get<std::string>() : value.dump());
  }
  if (options.tensors) {
    PrintTensors(info["tensors"]["parameters"]);
    PrintTensors(info["tensors"]["statistics"]);
  }
  return 0;
}

// Files as given; of a run folder every checkpoint.
std::vector<fs::path> FilesOf(const std::vector<std::string>& given) {
  std::vector<fs::path> files;
  for (const fs::path path : given) {
    const fs::path folder = fs::is_directory(path / "checkpoints") ? path / "checkpoints" : path;
    std::vector<fs::path> found;
    if (fs::is_directory(folder)) found = CheckpointFolder(folder, 1).List();
    if (found.empty()) found = {path};  // a file, or ProblemOf says what is missing
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

// "" when every byte of it is as it was written and every weight a number.
std::string ProblemOf(const fs::path& path) {
  try {
    const NonFinite bad =
        CountNonFinite(ReadStoredWeights(FindCheckpoint(path), CheckpointPart::kAll));
    if (bad.weights > 0) return fmt::format("{} of its weights are NaN or infinite", bad.weights);
    if (bad.solver > 0) {
      return fmt::format("{} of its solver's numbers are NaN or infinite", bad.solver);
    }
    return "";
  } catch (const CheckpointError& error) {
    return error.what();
  }
}

int Verify(const CkptOptions& options, bool as_json) {
  json list = json::array();
  bool ok = true;
  for (const fs::path& path : FilesOf(options.files)) {
    const std::string problem = ProblemOf(path);
    ok = ok && problem.empty();
    list.push_back({{"file", path.string()}, {"problem", problem}});
    if (as_json) continue;
    const bool named = problem.find(path.string()) != std::string::npos;
    std::cout << (named ? problem + "\n"
                        : fmt::format("{}: {}\n", path.string(), problem.empty() ? "ok" : problem));
  }
  if (as_json) std::cout << json{{"ok", ok}, {"files", list}}.dump(2) << '\n';
  return static_cast<int>(ok ? ExitCode::kDone : ExitCode::kCheckpoint);
}

std::string Line(const TensorDifference& d) {
  if (!d.what.empty()) return fmt::format("{:<44} {}\n", d.name, d.what);
  return fmt::format("{:<44} {:>10} differ, largest {:.3g}, relative {:.3g}\n", d.name, d.elements,
                     d.largest, d.relative);
}

int Diff(const CkptOptions& options, bool as_json) {
  const StoredWeights a = ReadStoredWeights(FindCheckpoint(options.files[0]));
  const StoredWeights b = ReadStoredWeights(FindCheckpoint(options.files[1]));
  const std::vector<TensorDifference> differences = Compare(a, b);
  json list = json::array();
  for (const TensorDifference& d : differences) {
    if (!as_json) std::cout << Line(d);
    list.push_back({{"name", d.name},
                    {"what", d.what},
                    {"elements", d.elements},
                    {"largest", d.largest},
                    {"relative", d.relative}});
  }
  if (as_json) {
    std::cout << json{{"equal", differences.empty()}, {"tensors", list}}.dump(2) << '\n';
  } else if (differences.empty()) {
    std::cout << "equal to the bit\n";
  } else {
    std::cout << fmt::format("{} of {} tensors differ\n", differences.size(), CountTensors(a, b));
  }
  return static_cast<int>(differences.empty() ? ExitCode::kDone : ExitCode::kCheckpoint);
}

using Action = int (*)(const CkptOptions&, bool);

CLI::App* AddAction(CLI::App& ckpt, Invocation& invocation,
                    const std::shared_ptr<CkptOptions>& options, const std::string& name,
                    const std::string& help, Action action, int least, int most) {
  CLI::App* command = AddCommand(ckpt, invocation, name, help, [&invocation, options, action] {
    return action(*options, invocation.json);
  });
  command->add_option("files", options->files, "checkpoints, run folders or safetensors files")
      ->required()
      ->expected(least, most);
  return command;
}

}  // namespace

static void AddCheckpointCommand(CLI::App& app, Invocation& invocation) {
  CLI::App* ckpt = app.add_subcommand("ckpt", "inspect checkpoints and other weights files");
  ckpt->require_subcommand(1);
  const auto options = std::make_shared<CkptOptions>();
  CLI::App* info = AddAction(*ckpt, invocation, options, "info",
                             "show what a file holds and which run wrote it", &Info, 1, 1);
  info->add_flag("--tensors", options->tensors, "also list the name and shape of every tensor");
  AddAction(*ckpt, invocation, options, "verify",
            "check every byte of a file; exit code 6 if it is damaged", &Verify, 1, 1'000'000);
  AddAction(*ckpt, invocation, options, "diff",
            "compare two files; exit code 6 if their weights differ", &Diff, 2, 2);
}

DTRAIN_COMMAND("ckpt", 60, AddCheckpointCommand);

}  // namespace dtrain
