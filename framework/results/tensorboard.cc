#include "framework/results/tensorboard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <string>

#include "framework/core/file.h"
#include "framework/core/process.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kPrefix = "events.out.tfevents.";
constexpr std::string_view kSuffix = ".dtrain";  // marks our files; TensorBoard reads any name

std::vector<fs::path> EventFilesIn(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with(kPrefix)) files.push_back(entry.path());
  }
  return files;
}

// Returns a time stamp later than that of any existing file, even if two starts are in the same second.
int64_t StampFor(const fs::path& folder) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  int64_t stamp = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  for (const fs::path& file : EventFilesIn(folder)) {
    const std::string digits = file.filename().string().substr(kPrefix.size());
    int64_t other = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), other);
    stamp = std::max(stamp, other + 1);
  }
  return stamp;
}

fs::path NewFileIn(const fs::path& folder, bool resumed) {
  MakeFolder(folder);
  if (!resumed) {
    for (const fs::path& file : EventFilesIn(folder)) {
      if (file.filename().string().ends_with(kSuffix)) fs::remove(file);
    }
  }
  return folder /
         fmt::format("{}{}.{}.{}{}", kPrefix, StampFor(folder), HostName(), ::getpid(), kSuffix);
}

}  // namespace

TensorBoardWriter::TensorBoardWriter(const fs::path& folder, std::optional<int64_t> resumed_step)
    : file_(NewFileIn(folder, resumed_step.has_value())) {
  if (resumed_step) file_.BeginAt(*resumed_step + 1);
}

void TensorBoardWriter::Write(const StepMetrics& metrics) {
  file_.Write(metrics.at.step, {{"train/loss", metrics.loss},
                                {"train/learning_rate", metrics.learning_rate},
                                {"train/samples_per_second", metrics.samples_per_second},
                                {"train/exposed_seconds", metrics.exposed_seconds}});
}

void TensorBoardWriter::Write(const EvaluationMetrics& metrics) {
  const std::string split = metrics.split.empty() ? "test" : metrics.split;
  EventFile::Scalars scalars = {{split + "/loss", metrics.loss}};
  const auto add = [&](const std::string& name, const std::optional<double>& value) {
    if (value) scalars.emplace_back(split + "/" + name, *value);
  };
  add("accuracy", metrics.accuracy);
  for (const auto& [name, value] : metrics.others) add(name, value);
  add("perplexity", metrics.perplexity);
  add("bleu", metrics.bleu);
  file_.Write(metrics.at.step, scalars);
}

}  // namespace dtrain
