#include "framework/core/timeline_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/core/bytes.h"
#include "framework/core/check.h"
#include "framework/core/timeline.h"

namespace dtrain {
namespace {

using nlohmann::ordered_json;

constexpr size_t kWriteBytes = 1 << 20;
constexpr int kSchema = 1;
constexpr char kEnd[] = "\n],\"otherData\":{\"schema\":";  // follows the events

struct Lane {
  std::string name;
  std::vector<std::string> quoted;  // the names of events and arguments as JSON strings
  std::vector<TimelineEvent> events;
  int64_t dropped = 0;
};

// Replaces bytes that are not UTF-8 (of a file name in a message, say), so that the file stays JSON.
std::string Quote(const std::string& text) {
  return ordered_json(text).dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

Lane ReadLane(ByteReader& reader) {
  Lane lane;
  lane.name = reader.Text();
  const auto names = reader.Value<uint64_t>();
  for (uint64_t i = 0; i < names; ++i) lane.quoted.push_back(Quote(reader.Text()));
  lane.events = reader.Values<TimelineEvent>();
  lane.dropped = reader.Value<int64_t>();
  return lane;
}

double Microseconds(Nanos ns) { return static_cast<double>(ns) * 1e-3; }

// Holds the events of one rank as text, each preceded by its separator.
class EventText {
 public:
  EventText(int rank, Nanos origin) : rank_(rank), origin_(origin) {}

  void NameRank(const std::string& name) {
    Meta("process_name", 0, fmt::format(R"("name":{})", Quote(name)));
    Meta("process_sort_index", 0, fmt::format(R"("sort_index":{})", rank_));
  }
  void NameLane(size_t lane, const std::string& name) {
    Meta("thread_name", lane, fmt::format(R"("name":{})", Quote(name)));
    Meta("thread_sort_index", lane, fmt::format(R"("sort_index":{})", lane));
  }
  void Add(const Lane& lane, size_t index, const TimelineEvent& event);

  size_t size() const { return text_.size(); }
  std::string_view text() const { return {text_.data(), text_.size()}; }
  void Clear() { text_.clear(); }

 private:
  template <class... Values>
  void Append(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
  }
  void Meta(const char* kind, size_t lane, const std::string& args) {
    Append(
        ",\n"
        R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{{}}}}})",
        kind, rank_, lane, args);
  }
  void AddArgs(const Lane& lane, const TimelineEvent& event);

  const int rank_;
  const Nanos origin_;
  fmt::memory_buffer text_;
};

void EventText::Add(const Lane& lane, size_t index, const TimelineEvent& event) {
  static constexpr const char* kPhases[] = {"X", "i", "C"};  // by TimelineEvent::Kind
  Append(
      ",\n"
      R"({{"ph":"{}","name":{},"pid":{},"tid":{},"ts":{:.3f})",
      kPhases[event.kind], lane.quoted.at(event.name), rank_, index,
      Microseconds(event.begin - origin_));
  if (event.kind == TimelineEvent::kSpan) {
    Append(R"(,"dur":{:.3f})", Microseconds(event.end - event.begin));
  }
  if (event.kind == TimelineEvent::kInstant) Append(R"(,"s":"t")");
  if (event.kind == TimelineEvent::kCounter) {
    Append(R"(,"args":{{"value":{}}})", event.values[0]);
  } else if (event.keys[0] >= 0) {
    AddArgs(lane, event);
  }
  Append("}}");
}

void EventText::AddArgs(const Lane& lane, const TimelineEvent& event) {
  Append(R"(,"args":{{{}:{})", lane.quoted.at(event.keys[0]), event.values[0]);
  if (event.keys[1] >= 0) {
    Append(",{}:{}", lane.quoted.at(event.keys[1]), event.values[1]);
  }
  Append("}}");
}

}  // namespace

TimelineFile::TimelineFile(const std::filesystem::path& path) : file_(path) {
  file_.Write(R"({"displayTimeUnit":"ms","traceEvents":[)");
}

void TimelineFile::Add(std::string_view packed) {
  ByteReader reader(packed);
  const int rank = reader.Value<int32_t>();
  const std::string role = reader.Text();
  EventText text(rank, reader.Value<Nanos>());
  const auto flush = [&] {
    // The very first event has no separator.
    file_.Write(text.text().substr(first_event_ ? 1 : 0));
    first_event_ = false;
    text.Clear();
  };
  text.NameRank(fmt::format("rank {} ({})", rank, role));
  const auto lanes = reader.Value<uint64_t>();
  for (uint64_t i = 0; i < lanes; ++i) {
    const Lane lane = ReadLane(reader);
    dropped_ += lane.dropped;
    text.NameLane(i, lane.name);
    for (const TimelineEvent& event : lane.events) {
      text.Add(lane, i, event);
      if (text.size() >= kWriteBytes) flush();
    }
  }
  flush();
}

void TimelineFile::Finish() {
  DT_CHECK(!finished_);
  file_.Write(fmt::format("{}{},\"dropped_events\":{}}}}}\n", kEnd, kSchema, dropped_));
  file_.Publish();
  finished_ = true;
}

bool IsTimelineFile(const std::filesystem::path& path) {
  constexpr std::streamoff kLongest = 200;  // the file's text from kEnd on is shorter
  if (!std::filesystem::is_regular_file(path)) return false;
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  in.seekg(-std::min<std::streamoff>(in.tellg(), kLongest), std::ios::end);
  const std::string end(std::istreambuf_iterator<char>(in), {});
  return end.find(kEnd) != std::string::npos;
}

}  // namespace dtrain
