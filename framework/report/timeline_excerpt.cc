#include "framework/report/timeline_excerpt.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <optional>

#include <nlohmann/json.hpp>

#include "framework/results/run_files.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int64_t kFirstStep = 10, kSteps = 4;
constexpr size_t kRanks = 16, kSpans = 400;

// Times are in microseconds of the timeline.
struct Excerpt {
  int64_t first_step = 0, last_step = 0;
  double begin = 0, end = 0;
};

struct Lane {
  std::string name;
  ordered_json spans = ordered_json::array();
};

struct RankLanes {
  std::string name;
  std::map<int64_t, Lane> lanes;
};

// Returns the number after "ts", or 0 if there is none.  Parsing the line as JSON would take much longer.
double TimeIn(const std::string& line) {
  constexpr std::string_view kKey = "\"ts\":";
  const size_t at = line.find(kKey);
  return at == std::string::npos ? 0 : std::strtod(line.c_str() + at + kKey.size(), nullptr);
}

// The file has one event a line.  `wanted` gets the line's text; if it returns true, `use` gets the parsed event and
// returns false to stop reading.
void ForEachEvent(const fs::path& path, const std::function<bool(const std::string&)>& wanted,
                  const std::function<bool(const json&)>& use) {
  std::ifstream lines(path, std::ios::binary);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.back() == ',') line.pop_back();
    if (!wanted(line)) continue;
    const json event = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (event.is_object() && event.contains("ph") && !use(event)) return;
  }
}

int64_t IdIn(const json& event, const char* key) {
  return static_cast<int64_t>(std::clamp(NumberIn(event, key).value_or(-1), -1.0, 1e9));
}

// Chooses the time span by the steps of the first rank that has compute events.
std::optional<Excerpt> ChooseExcerpt(const fs::path& path) {
  std::vector<double> begins, ends;
  int64_t rank = -1;
  const auto is_compute = [](const std::string& line) {
    return line.find(R"("name":"compute","pid")") != std::string::npos;
  };
  ForEachEvent(path, is_compute, [&](const json& event) {
    if (rank < 0) rank = IdIn(event, "pid");
    if (IdIn(event, "pid") != rank) return false;
    begins.push_back(NumberIn(event, "ts").value_or(0));
    ends.push_back(begins.back() + NumberIn(event, "dur").value_or(0));
    return begins.size() < static_cast<size_t>(kFirstStep + kSteps + 1);
  });
  if (begins.empty()) return std::nullopt;
  const auto count = static_cast<int64_t>(begins.size());
  const int64_t last = std::min(kFirstStep + kSteps - 1, count - 1);
  const int64_t first = std::max<int64_t>(0, last - kSteps + 1);
  const double end = last + 1 < count ? begins[last + 1] : ends[last] * 1.001;
  return Excerpt{first, last, first > 0 ? ends[first - 1] : begins[0], end};
}

class Lanes {
 public:
  explicit Lanes(const Excerpt& excerpt) : excerpt_(excerpt) {}

  bool Wants(const std::string& line) const {
    if (line.find(R"("ph":"M")") != std::string::npos) return true;
    if (line.find(R"("ph":"X")") == std::string::npos) return false;
    const double at = TimeIn(line);
    return at >= excerpt_.begin && at < excerpt_.end;
  }
  void Add(const json& event);
  ordered_json Json() const;

 private:
  void AddName(const json& event);
  void AddSpan(const json& event);

  const Excerpt excerpt_;
  std::map<int64_t, RankLanes> ranks_;
};

void Lanes::Add(const json& event) {
  if (TextIn(event, "ph") == "M") {
    AddName(event);
  } else {
    AddSpan(event);
  }
}

void Lanes::AddName(const json& event) {
  const auto args = event.find("args");
  if (args == event.end() || !args->is_object()) return;
  RankLanes& rank = ranks_[IdIn(event, "pid")];
  const std::string kind = TextIn(event, "name"), name = TextIn(*args, "name");
  if (kind == "process_name") rank.name = name;
  if (kind == "thread_name") rank.lanes[IdIn(event, "tid")].name = name;
}

void Lanes::AddSpan(const json& event) {
  ordered_json& spans = ranks_[IdIn(event, "pid")].lanes[IdIn(event, "tid")].spans;
  const auto begin = NumberIn(event, "ts"), length = NumberIn(event, "dur");
  if (!begin || !length || spans.size() == kSpans) return;
  const auto milliseconds = [&](double at) { return Shortened((at - excerpt_.begin) * 1e-3); };
  ordered_json span = {TextIn(event, "name"), milliseconds(*begin), milliseconds(*begin + *length)};
  const auto args = event.find("args");
  if (args != event.end() && args->is_object()) {
    if (const auto bucket = NumberIn(*args, "bucket")) span.push_back(*bucket);
  }
  spans.push_back(std::move(span));
}

ordered_json Lanes::Json() const {
  ordered_json json = {{"steps", {excerpt_.first_step, excerpt_.last_step}},
                       {"milliseconds", Shortened((excerpt_.end - excerpt_.begin) * 1e-3)},
                       {"ranks_left_out", ranks_.size() - std::min(ranks_.size(), kRanks)},
                       {"ranks", ordered_json::array()}};
  for (const auto& [number, rank] : ranks_) {
    if (json["ranks"].size() == kRanks) break;
    ordered_json lanes = ordered_json::array();
    for (const auto& [id, lane] : rank.lanes) {
      if (!lane.spans.empty()) lanes.push_back({{"name", lane.name}, {"spans", lane.spans}});
    }
    json["ranks"].push_back({{"rank", number}, {"name", rank.name}, {"lanes", lanes}});
  }
  return json;
}

}  // namespace

ordered_json ExcerptOf(const fs::path& timeline) {
  if (!fs::is_regular_file(timeline)) return nullptr;
  const std::optional<Excerpt> excerpt = ChooseExcerpt(timeline);
  if (!excerpt) return nullptr;
  Lanes lanes(*excerpt);
  ForEachEvent(
      timeline, [&](const std::string& line) { return lanes.Wants(line); },
      [&](const json& event) {
        lanes.Add(event);
        return true;
      });
  return lanes.Json();
}

}  // namespace dtrain
