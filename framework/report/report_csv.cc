#include "framework/report/report_csv.h"

#include <algorithm>
#include <iterator>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/core/text.h"
#include "framework/report/run_report.h"
#include "framework/results/run_files.h"
#include "framework/results/run_folder.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

using nlohmann::json;

// Holds the columns before a value's name.
struct Place {
  std::string run, kind, split, rank, epoch, step, seconds;
};

std::string NumberText(const json& object, const std::string& key) {
  const auto number = NumberIn(object, key);
  return number ? fmt::format("{}", *number) : "";
}

class Csv {
 public:
  void Value(const Place& at, const std::string& name, const std::string& value) {
    fmt::format_to(std::back_inserter(text_), "{},{},{},{},{},{},{},{},{}\n", CsvField(at.run),
                   at.kind, CsvField(at.split), at.rank, at.epoch, at.step, at.seconds,
                   CsvField(name), value);
  }
  // Writes every number of a line, except those that are columns of their own.
  void Numbers(const Place& at, const json& line, const std::string& prefix = "") {
    static const std::set<std::string> kPlaces = {"schema", "epoch", "step", "training_seconds",
                                                  "rank"};
    for (const auto& [key, value] : line.items()) {
      if (prefix.empty() && at.kind != "summary" && kPlaces.contains(key)) continue;
      if (value.is_object()) Numbers(at, value, prefix + key + ".");
      if (value.is_array()) List(at, value, prefix + key);
      if (value.is_number() || value.is_null()) Value(at, prefix + key, NumberText(line, key));
    }
  }
  std::string Take() { return fmt::to_string(text_); }

 private:
  // An entry with a rank is named without its index, "workers_detail.steps", since the rank is in its own column.
  // Other entries have their index in the name, "staleness.histogram[2]".
  void List(const Place& at, const json& list, const std::string& name) {
    for (size_t i = 0; i < list.size(); ++i) {
      const json& entry = list[i];
      const std::string numbered = fmt::format("{}[{}]", name, i);
      if (entry.is_number()) Value(at, numbered, fmt::format("{}", entry.get<double>()));
      if (!entry.is_object()) continue;
      Place place = at;
      place.rank = NumberText(entry, "rank");
      Numbers(place, entry, (place.rank.empty() ? numbered : name) + ".");
    }
  }

  fmt::memory_buffer text_;
};

void AddMetrics(const fs::path& path, const std::string& run, Csv& csv) {
  ForEachLine(path, [&](const json& line) {
    csv.Numbers({.run = run,
                 .kind = TextIn(line, "kind"),
                 .split = TextIn(line, "split"),
                 .epoch = NumberText(line, "epoch"),
                 .step = NumberText(line, "step"),
                 .seconds = NumberText(line, "training_seconds")},
                line);
  });
}

// Writes the mean times of a step, for each window of steps.
void AddRank(const json& line, const std::string& run, Csv& csv) {
  const std::vector<double> seconds = NumbersIn(line, "seconds"),
                            steps = NumbersIn(line, "own_steps");
  Place at{.run = run,
           .kind = "rank",
           .rank = NumberText(line, "rank"),
           .step = NumberText(line, "step")};
  for (const char* name : {"compute_seconds", "wait_seconds"}) {
    const std::vector<double> values = NumbersIn(line, name);
    const size_t count = std::min({seconds.size(), steps.size(), values.size()});
    for (size_t i = 0; i < count; ++i) {
      if (steps[i] < 1) continue;
      at.seconds = fmt::format("{}", seconds[i]);
      csv.Value(at, name, fmt::format("{}", values[i] / steps[i]));
    }
  }
  const std::vector<double> longest = NumbersIn(line, "longest_seconds");
  for (size_t i = 0; i < std::min({seconds.size(), steps.size(), longest.size()}); ++i) {
    at.seconds = fmt::format("{}", seconds[i]);
    csv.Value(at, "own_steps", fmt::format("{}", steps[i]));
    csv.Value(at, "longest_seconds", fmt::format("{}", longest[i]));
  }
  at.seconds = seconds.empty() ? "" : fmt::format("{}", seconds.back());
  for (const char* name : {"bytes_sent", "bytes_received", "messages"}) {
    csv.Value(at, name, NumberText(line, name));
  }
}

}  // namespace

std::string ReportCsv(const std::vector<fs::path>& runs) {
  Csv csv;
  csv.Value({"run", "kind", "split", "rank", "epoch", "step", "training_seconds"}, "name", "value");
  for (const fs::path& folder : runs) {
    CheckRunFolder(folder);
    const RunFolder run(folder);
    const std::string name = folder.string();
    AddMetrics(run.metrics(), name, csv);
    ForEachLine(run.ranks(), [&](const json& line) { AddRank(line, name, csv); });
    if (const auto summary = ReadJsonObject(run.summary())) {
      csv.Numbers({.run = name, .kind = "summary"}, *summary);
    }
  }
  return csv.Take();
}

}  // namespace dtrain
