#include "framework/checkpoint/checkpoint_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "framework/checkpoint/rank_checkpoint.h"
#include "framework/core/check.h"
#include "framework/core/file.h"
#include "framework/core/log.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

constexpr char kPrefix[] = "step-";
constexpr char kLatest[] = "latest";

struct Named {
  int64_t step;
  std::string rest;  // what follows the number: ".h5", ".rank-2.h5", ".h5.tmp"
};

// Removes a number from the beginning of `text`; returns nullopt if it begins with none.
std::optional<int64_t> TakeNumber(std::string& text) {
  int64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc() || number < 0) return std::nullopt;
  text.erase(0, static_cast<size_t>(read.ptr - text.data()));
  return number;
}

bool IsEnding(std::string rest) {
  constexpr std::string_view kRank = ".rank-";
  if (rest.starts_with(kRank)) {
    rest.erase(0, kRank.size());
    if (!TakeNumber(rest)) return false;
  }
  return rest == ".h5" || rest == ".h5.tmp";
}

// Parses only names that a run gives to its files.  A file with a merely similar name belongs to the user.
std::optional<Named> ParseName(const std::string& name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  std::string rest = name.substr(sizeof(kPrefix) - 1);
  const std::optional<int64_t> step = TakeNumber(rest);
  if (!step || !IsEnding(rest)) return std::nullopt;
  if (name != fs::path(CheckpointName(*step)).stem().string() + rest) return std::nullopt;
  return Named{*step, rest};
}

std::vector<fs::path> FilesIn(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code absent;  // no folder, no files
  for (const auto& entry : fs::directory_iterator(folder, absent)) files.push_back(entry.path());
  return files;
}

// Returns the steps of the main files, newest first.
std::vector<int64_t> StepsIn(const fs::path& folder) {
  std::vector<int64_t> steps;
  for (const fs::path& file : FilesIn(folder)) {
    const auto named = ParseName(file.filename());
    if (named && named->rest == ".h5") steps.push_back(named->step);
  }
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

[[noreturn]] void ThrowNothingThere(const fs::path& where) {
  const std::string absent = fmt::format("there is no checkpoint at {}", where.string());
  throw CheckpointError(fs::is_directory(where) ? absent : WhyNoFile(where, absent),
                        "give the output folder of a run, a checkpoint (step-N.h5) or a "
                        ".safetensors file, which --resume does not take");
}

std::optional<Checkpoint> NewestSound(const fs::path& folder, const ModelLayout& layout) {
  std::string passed_over;
  for (const fs::path& path : CheckpointFolder(folder, 1).List()) {
    try {
      Checkpoint checkpoint = ReadCheckpoint(path, layout);
      CheckRankFiles(path, checkpoint.info);
      if (!passed_over.empty()) {
        log::Warning("{}; going on from {}", passed_over, path.filename().string());
      }
      return checkpoint;
    } catch (const CheckpointMismatch&) {
      throw;
    } catch (const CheckpointError& error) {
      passed_over += (passed_over.empty() ? "passed over: " : "; ") + std::string(error.what());
    }
  }
  if (passed_over.empty()) return std::nullopt;
  throw CheckpointError(
      fmt::format("no checkpoint of {} can be used; {}", folder.string(), passed_over),
      "start afresh with --resume none in another --output");
}

}  // namespace

std::string CheckpointName(int64_t step) { return fmt::format("{}{:08}.h5", kPrefix, step); }

CheckpointFolder::CheckpointFolder(fs::path folder, int keep)
    : folder_(std::move(folder)), keep_(keep) {
  DT_CHECK(keep_ >= 1) << "keep " << keep_;
}

fs::path CheckpointFolder::Save(const CheckpointView& view) const {
  const int64_t step = view.info.position.step;
  const fs::path path = folder_ / CheckpointName(step);
  MakeFolder(folder_);
  WriteCheckpoint(path, view);
  WriteFileDurably(folder_ / kLatest, CheckpointName(step) + "\n");
  RemoveAllBut(step);
  RemoveStrangers(path, view.info.rank_files.size());
  return path;
}

std::vector<fs::path> CheckpointFolder::List() const {
  std::vector<fs::path> paths;
  for (const int64_t step : StepsIn(folder_)) paths.push_back(folder_ / CheckpointName(step));
  return paths;
}

void CheckpointFolder::RemoveAllBut(int64_t newest_step) const {
  std::vector<int64_t> kept = StepsIn(folder_);
  std::erase_if(kept, [&](int64_t step) { return step > newest_step; });
  kept.resize(std::min(kept.size(), static_cast<size_t>(keep_)));
  for (const fs::path& file : FilesIn(folder_)) {
    const auto named = ParseName(file.filename());
    if (!named) continue;
    const bool keep = std::find(kept.begin(), kept.end(), named->step) != kept.end();
    if (keep && !named->rest.ends_with(".tmp")) continue;
    std::error_code error;
    if (fs::is_regular_file(fs::symlink_status(file, error))) fs::remove(file, error);
    if (error) log::Warning("cannot remove {}: {}", file.string(), error.message());
  }
}

// A run that was resumed at an earlier checkpoint may reach the same step again with fewer ranks.
void CheckpointFolder::RemoveStrangers(const fs::path& main, size_t ranks) const {
  for (size_t rank = ranks; fs::exists(RankFileOf(main, static_cast<int64_t>(rank))); ++rank) {
    std::error_code ignored;
    fs::remove(RankFileOf(main, static_cast<int64_t>(rank)), ignored);
  }
}

bool GoesOnIn(const fs::path& run_folder, const std::string& how) {
  if (how == "none" || how == "auto") return how == "auto";
  std::error_code error;
  if (!fs::exists(how, error)) return true;  // ResumeFrom reports the error
  const fs::path from = fs::weakly_canonical(how, error);
  if (from == fs::weakly_canonical(run_folder, error)) return true;
  const fs::path own = fs::weakly_canonical(run_folder / "checkpoints", error);
  return std::ranges::mismatch(own, from).in1 == own.end();
}

fs::path FindCheckpoint(const fs::path& where) {
  if (fs::is_regular_file(where)) return where;
  if (fs::is_directory(where / "checkpoints")) return FindCheckpoint(where / "checkpoints");
  if (fs::is_regular_file(where / kLatest)) {
    std::string name = ReadFile(where / kLatest);
    while (!name.empty() && name.back() == '\n') name.pop_back();
    // Only a plain name is accepted: a path could lead out of this folder.
    const bool is_name = !name.empty() && name.find('/') == std::string::npos;
    if (is_name && fs::is_regular_file(where / name)) return where / name;
  }
  const std::vector<fs::path> paths = CheckpointFolder(where, 1).List();
  if (paths.empty()) ThrowNothingThere(where);
  return paths.front();
}

fs::path FindWeights(const fs::path& where) {
  for (const fs::path& folder : {where / "checkpoints", where}) {
    if (fs::is_regular_file(folder / kBestName)) return folder / kBestName;
  }
  return FindCheckpoint(where);
}

std::optional<Checkpoint> ResumeFrom(const fs::path& folder, const std::string& how,
                                     const ModelLayout& layout) {
  if (how == "none") return std::nullopt;
  if (how == "auto") return NewestSound(folder, layout);
  Checkpoint checkpoint = ReadCheckpoint(FindCheckpoint(how), layout);
  CheckRankFiles(checkpoint.path, checkpoint.info);
  return checkpoint;
}

}  // namespace dtrain
