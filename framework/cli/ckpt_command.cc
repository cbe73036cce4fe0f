// `dtrain ckpt info|verify|diff`: inspects weight files in any of the formats.
#include <CLI/CLI.hpp>

#include <functional>
#include <iostream>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/checkpoint/checkpoint.h"
#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/checkpoint/rank_checkpoint.h"
#include "framework/checkpoint/weights_compare.h"
#include "framework/checkpoint/weights_file.h"
#include "framework/cli/command.h"
#include "framework/core/error.h"
#include "framework/core/printable.h"
#include "framework/results/run_so_far.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

struct CkptOptions {
  std::vector<std::string> files;
  bool tensors = false;
};

// Returns the main file of a checkpoint, given that file or one of its rank files.
fs::path MainOf(const fs::path& path) {
  const std::string name = path.filename();
  const size_t at = name.rfind(".rank-");
  return at == std::string::npos ? path : path.parent_path() / (name.substr(0, at) + ".h5");
}

ordered_json TensorList(const ArenaLayout& layout) {
  ordered_json list = ordered_json::array();
  std::map<std::string, std::vector<int64_t>> by_name;
  for (const ArenaEntry& entry : layout.entries) by_name[entry.name] = entry.shape;
  for (const auto& [name, shape] : by_name) list.push_back({{"name", name}, {"shape", shape}});
  return list;
}

ordered_json InfoOf(const fs::path& path, const StoredWeights& stored, bool tensors) {
  ordered_json info = {
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
  if (const LossScale& scale = stored.info.position.loss_scale; scale != LossScale()) {
    info["loss_scale"] = {
        {"factor", scale.factor}, {"steps", scale.steps}, {"skipped", scale.skipped}};
  }
  if (!stored.info.plan_json.empty()) {
    info["solver"] = stored.info.solver;
    info["seed"] = stored.info.seed;
    if (!stored.info.so_far.empty()) {
      const RunSoFar so_far = RunSoFarFrom(stored.info.so_far);
      info["seconds"] = so_far.seconds;
      info["training_seconds"] = so_far.training_seconds;
    }
  }
  if (tensors) {
    info["tensors"] = {{"parameters", TensorList(stored.layout.parameters)},
                       {"statistics", TensorList(stored.layout.state)}};
  }
  return info;
}

// Returns for each rank its role, the state it holds for other ranks, and its vectors with their lengths.
ordered_json RanksOf(const fs::path& path, const CheckpointInfo& info) {
  ordered_json ranks = ordered_json::array();
  for (size_t rank = 0; rank < info.rank_files.size(); ++rank) {
    const RankCheckpoint file =
        ReadRankCheckpoint(path, static_cast<int64_t>(rank), info.rank_files[rank]);
    ordered_json vectors = ordered_json::object();
    int64_t numbers = 0;
    for (const StateRecord* record : {&file.exchange, &file.host}) {
      for (const StateField& field : record->fields) {
        if (field.floats.empty()) {
          numbers += static_cast<int64_t>(field.ints.size());
        } else {
          vectors[(field.owner.empty() ? "" : field.owner + ": ") + field.name] =
              field.floats.size();
        }
      }
    }
    ranks.push_back({{"file", RankFileOf(path, file.rank).string()},
                     {"role", file.role},
                     {"holds", file.holds},
                     {"vectors", vectors},
                     {"numbers", numbers}});
    // The field has the number of mini-batches of the rank's worker so far.
    const StateField* const steps = file.host.Find("", "steps");
    if (steps != nullptr) ranks.back()["steps"] = steps->ints.at(0);
  }
  return ranks;
}

void PrintRanks(const ordered_json& ranks) {
  for (const ordered_json& rank : ranks) {
    std::cout << fmt::format("{} ({}), {} numbers{}{}\n",
                             fs::path(rank["file"].get<std::string>()).filename().string(),
                             rank["role"].get<std::string>(), rank["numbers"].get<int64_t>(),
                             rank["holds"] == "" ? "" : "; ", rank["holds"].get<std::string>());
    for (const auto& [name, count] : rank["vectors"].items()) {
      std::cout << fmt::format("  {:<44} [{}]\n", Printable(name), count.get<int64_t>());
    }
  }
}

void PrintTensors(const ordered_json& list) {
  for (const ordered_json& tensor : list) {
    std::cout << fmt::format("  {:<44} {}\n", Printable(tensor["name"].get<std::string>()),
                             tensor["shape"].dump());
  }
}

void PrintInfo(const ordered_json& info) {
  for (const auto& [key, value] : info.items()) {
    if (value.is_structured()) continue;
    std::cout << fmt::format(
        "{:<16} {}\n", key, value.is_string() ? Printable(value.get<std::string>()) : value.dump());
  }
  if (info.contains("tensors")) {
    PrintTensors(info["tensors"]["parameters"]);
    PrintTensors(info["tensors"]["statistics"]);
  }
  if (info.contains("ranks")) PrintRanks(info["ranks"]);
}

// Shows a file.  For a run folder it shows the last checkpoint and, if the run keeps them, the best weights.
int Info(const CkptOptions& options, bool as_json) {
  const fs::path path = MainOf(FindCheckpoint(options.files[0]));
  const fs::path best = FindWeights(options.files[0]);
  const StoredWeights stored = ReadStoredWeights(path);
  ordered_json info = InfoOf(path, stored, options.tensors);
  if (!stored.info.rank_files.empty()) info["ranks"] = RanksOf(path, stored.info);
  if (best.filename() == kBestName && path.filename() != kBestName) {
    info["used_by"] = "--resume";
    info["best"] = InfoOf(best, ReadStoredWeights(best), options.tensors);
    info["best"]["used_by"] = "predict, translate, eval, export, --weights";
  }
  if (as_json) {
    std::cout << JsonText(info, 2) << '\n';
    return 0;
  }
  PrintInfo(info);
  if (info.contains("best")) {
    std::cout << '\n';
    PrintInfo(info["best"]);
  }
  return 0;
}

// Returns the given files; for a run folder every checkpoint and the best weights.
std::vector<fs::path> FilesOf(const std::vector<std::string>& given) {
  std::vector<fs::path> files;
  for (const fs::path path : given) {
    const fs::path folder = fs::is_directory(path / "checkpoints") ? path / "checkpoints" : path;
    std::vector<fs::path> found;
    if (fs::is_directory(folder)) found = CheckpointFolder(folder, 1).List();
    if (fs::is_regular_file(folder / kBestName)) found.push_back(folder / kBestName);
    if (found.empty()) found = {path};  // a file; if it does not exist, ProblemOf reports that
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

// Returns "" if `check` neither throws nor returns a problem.
std::string ProblemOf(const std::function<std::string()>& check) {
  try {
    return check();
  } catch (const CheckpointError& error) {
    return error.what();
  }
}

struct Verdict {
  fs::path file;
  std::string problem;  // "" if every byte is as written and every weight is finite
};

// Checks a file and, if it has any, its rank files.
std::vector<Verdict> VerdictsOn(const fs::path& given) {
  fs::path path = given;
  CheckpointInfo info;
  std::vector<Verdict> verdicts = {
      {path, ProblemOf([&]() -> std::string {
         path = MainOf(FindCheckpoint(given));
         const StoredWeights stored = ReadStoredWeights(path, CheckpointPart::kAll);
         info = stored.info;
         const NonFinite bad = CountNonFinite(stored);
         if (bad.weights > 0)
           return fmt::format("{} of its weights are NaN or infinite", bad.weights);
         if (bad.solver == 0) return "";
         return fmt::format("{} of its solver's numbers are NaN or infinite", bad.solver);
       })}};
  for (size_t rank = 0; rank < info.rank_files.size(); ++rank) {
    const auto number = static_cast<int64_t>(rank);
    verdicts.push_back(
        {RankFileOf(path, number), ProblemOf([&]() -> std::string {
           const int64_t bad =
               CountNonFinite(ReadRankCheckpoint(path, number, info.rank_files[rank]));
           return bad == 0 ? "" : fmt::format("{} of its numbers are NaN or infinite", bad);
         })});
  }
  return verdicts;
}

int Verify(const CkptOptions& options, bool as_json) {
  ordered_json list = ordered_json::array();
  bool ok = true;
  std::vector<Verdict> verdicts;
  for (const fs::path& path : FilesOf(options.files)) {
    for (Verdict& verdict : VerdictsOn(path)) verdicts.push_back(std::move(verdict));
  }
  for (const auto& [path, problem] : verdicts) {
    ok = ok && problem.empty();
    list.push_back({{"file", path.string()}, {"problem", problem}});
    if (as_json) continue;
    const bool named = problem.find(path.string()) != std::string::npos;
    std::cout << (named ? problem + "\n"
                        : fmt::format("{}: {}\n", path.string(), problem.empty() ? "ok" : problem));
  }
  if (as_json) std::cout << JsonText(ordered_json{{"ok", ok}, {"files", list}}, 2) << '\n';
  return static_cast<int>(ok ? ExitCode::kDone : ExitCode::kCheckpoint);
}

std::string Line(const TensorDifference& d) {
  const std::string name = Printable(d.name);
  if (!d.what.empty()) return fmt::format("{:<44} {}\n", name, d.what);
  return fmt::format("{:<44} {:>10} differ, largest {:.3g}, relative {:.3g}\n", name, d.elements,
                     d.largest, d.relative);
}

// Compares the rank files of two checkpoints, rank by rank.
std::vector<TensorDifference> CompareRanks(const fs::path& a_path, const StoredWeights& a,
                                           const fs::path& b_path, const StoredWeights& b) {
  const std::vector<std::string>&of_a = a.info.rank_files, &of_b = b.info.rank_files;
  std::vector<TensorDifference> differences;
  if (of_a.size() != of_b.size()) {
    differences.push_back(
        {"rank files", fmt::format("{} and {}", of_a.size(), of_b.size()), 0, 0, 0});
  }
  for (size_t rank = 0; rank < std::min(of_a.size(), of_b.size()); ++rank) {
    const auto number = static_cast<int64_t>(rank);
    const auto found = Compare(ReadRankCheckpoint(a_path, number, of_a[rank]),
                               ReadRankCheckpoint(b_path, number, of_b[rank]), a.layout.parameters);
    differences.insert(differences.end(), found.begin(), found.end());
  }
  return differences;
}

constexpr int kTheyDiffer = 1;  // the exit code of diff(1) and cmp(1)

int Diff(const CkptOptions& options, bool as_json) {
  const fs::path a_path = MainOf(FindCheckpoint(options.files[0]));
  const fs::path b_path = MainOf(FindCheckpoint(options.files[1]));
  const StoredWeights a = ReadStoredWeights(a_path), b = ReadStoredWeights(b_path);
  std::vector<TensorDifference> differences = Compare(a, b);
  const auto tensors = static_cast<int64_t>(differences.size());
  for (TensorDifference& own : CompareRanks(a_path, a, b_path, b)) {
    differences.push_back(std::move(own));
  }
  // The names are printed because a run folder stands for its last checkpoint, which may not be the one that the user
  // means.
  if (!as_json && !differences.empty()) {
    std::cout << fmt::format("{} and {}:\n", a_path.string(), b_path.string());
  }
  ordered_json list = ordered_json::array();
  for (const TensorDifference& d : differences) {
    if (!as_json) std::cout << Line(d);
    list.push_back({{"name", d.name},
                    {"what", d.what},
                    {"elements", d.elements},
                    {"largest", d.largest},
                    {"relative", d.relative}});
  }
  if (as_json) {
    std::cout << JsonText(ordered_json{{"equal", differences.empty()}, {"tensors", list}}, 2)
              << '\n';
  } else if (differences.empty()) {
    std::cout << "equal to the bit\n";
  } else {
    const auto own = static_cast<int64_t>(differences.size()) - tensors;
    std::cout << fmt::format("{} of {} tensors differ{}\n", tensors, CountTensors(a, b),
                             own == 0 ? "" : ", and what the ranks have of their own");
  }
  return differences.empty() ? 0 : kTheyDiffer;
}

using CkptAction = int (*)(const CkptOptions&, bool);

CLI::App* AddAction(CLI::App& ckpt, Invocation& invocation,
                    const std::shared_ptr<CkptOptions>& options, const std::string& name,
                    const std::string& help, CkptAction action, int least, int most) {
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
  CLI::App* info = AddAction(
      *ckpt, invocation, options, "info",
      "show the content of a file; for a run folder, of the last checkpoint and the best weights",
      &Info, 1, 1);
  info->add_flag("--tensors", options->tensors, "also list the name and shape of every tensor");
  AddAction(*ckpt, invocation, options, "verify",
            "check every byte of a file; exit code 6 if it is damaged", &Verify, 1, 1'000'000);
  AddAction(*ckpt, invocation, options, "diff",
            "compare two files; exit code 1 if their weights differ", &Diff, 2, 2);
}

DTRAIN_COMMAND("ckpt", 60, AddCheckpointCommand);

}  // namespace dtrain
