#include "framework/core/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <map>
#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/timeline_file.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;

TEST(Timeline, KeepsEventsInOrderAndNamesOnce) {
  Timeline timeline("compute");
  const int forward = timeline.Name("forward");
  const int backward = timeline.Name("backward");
  EXPECT_EQ(timeline.Name("forward"), forward);
  EXPECT_NE(forward, backward);
  timeline.Span(backward, 20, 50);
  timeline.Span(forward, 10, 20);
  ASSERT_EQ(timeline.events().size(), 2u);
  EXPECT_EQ(timeline.events()[0].name, backward);
  EXPECT_EQ(timeline.events()[0].begin, 20);
  EXPECT_EQ(timeline.events()[0].end, 50);
  EXPECT_EQ(timeline.events()[1].name, forward);
  EXPECT_THAT(timeline.names(), ::testing::ElementsAre("forward", "backward"));
}

TEST(Timeline, DropsAndCountsWhatIsTooMuch) {
  Timeline timeline("compute", 3);
  const TimelineEvent* memory = timeline.events().data();
  for (int i = 0; i < 10; ++i) timeline.Instant(timeline.Name("tick"), i);
  ASSERT_EQ(timeline.events().size(), 3u);
  EXPECT_EQ(timeline.events().back().begin, 2);
  EXPECT_EQ(timeline.dropped(), 7);
  EXPECT_EQ(timeline.events().data(), memory) << "recording must not move memory";
}

TEST(Timeline, EqualRecordingsAreEqualBytes) {
  const auto record = [](int64_t value) {
    Timeline timeline("compute", 100);
    timeline.Counter(timeline.Name("lead"), 5, value);
    const Timeline* const lanes[] = {&timeline};
    return PackTimelines({.rank = 1, .role = "worker 1"}, lanes);
  };
  EXPECT_EQ(record(3), record(3));
  EXPECT_NE(record(3), record(4));
}

class TimelineFileTest : public ::testing::Test {
 protected:
  TimelineFileTest() {
    std::string pattern = (fs::temp_directory_path() / "dtrain-timeline-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~TimelineFileTest() override { fs::remove_all(folder_); }

  json Written() const { return json::parse(ReadFile(path())); }
  fs::path path() const { return folder_ / "timeline.json"; }

  fs::path folder_;
};

std::string Pack(const TimelineRank& rank, const Timeline& first) {
  const Timeline* const lanes[] = {&first};
  return PackTimelines(rank, lanes);
}

// Returns a rank with every kind of event.  Its clock reads 1,000,000 ns at the origin.
std::string SampleRank() {
  Timeline compute("compute", 4), exchange("exchange", 4);
  compute.Span(compute.Name("step \"1\""), 1'001'000, 1'003'500, {compute.Name("step"), 7},
               {compute.Name("samples"), 64});
  compute.Instant(compute.Name("ready"), 1'002'250, {compute.Name("begin"), -3});
  exchange.Counter(exchange.Name("in flight"), 1'004'001, 12);
  const Timeline* const lanes[] = {&compute, &exchange};
  return PackTimelines({.rank = 3, .role = "worker 3", .origin = 1'000'000}, lanes);
}

TEST_F(TimelineFileTest, WritesEveryKindOfEventAsTheFormatAsks) {
  TimelineFile file(path());
  file.Add(SampleRank());
  file.Finish();
  const json expected = json::parse(R"json([
    {"ph": "M", "name": "process_name", "pid": 3, "tid": 0, "args": {"name": "rank 3 (worker 3)"
}
},
    {"ph": "M", "name": "process_sort_index", "pid": 3, "tid": 0, "args": {"sort_index": 3}},
    {"ph": "M", "name": "thread_name", "pid": 3, "tid": 0, "args": {"name": "compute"}},
    {"ph": "M", "name": "thread_sort_index", "pid": 3, "tid": 0, "args": {"sort_index": 0}},
    {"ph": "X", "name": "step \"1\"", "pid": 3, "tid": 0, "ts": 1.0, "dur": 2.5,
     "args": {"step": 7, "samples": 64}},
    {"ph": "i", "name": "ready", "pid": 3, "tid": 0, "ts": 2.25, "s": "t", "args": {"begin": -3}},
    {"ph": "M", "name": "thread_name", "pid": 3, "tid": 1, "args": {"name": "exchange"}},
    {"ph": "M", "name": "thread_sort_index", "pid": 3, "tid": 1, "args": {"sort_index": 1}},
    {"ph": "C", "name": "in flight", "pid": 3, "tid": 1, "ts": 4.001, "args": {"value": 12}}
  ])json");
  const json written = Written();
  EXPECT_EQ(written["traceEvents"], expected);
  EXPECT_EQ(written["displayTimeUnit"], "ms");
}

TEST_F(TimelineFileTest, AddsUpRanksAndWhatTheyDropped) {
  TimelineFile file(path());
  for (int rank = 2; rank >= 0; --rank) {
    Timeline lane("compute", 1);
    for (int i = 0; i <= rank; ++i) lane.Instant(lane.Name("tick"), i);
    file.Add(Pack({.rank = rank, .role = "server 0"}, lane));
  }
  file.Finish();
  const json written = Written();
  EXPECT_EQ(written["otherData"]["dropped_events"], 0 + 1 + 2);
  EXPECT_EQ(written["otherData"]["schema"], 1);
  std::map<int, int> instants;
  for (const json& event : written["traceEvents"]) {
    if (event["ph"] == "i") ++instants[event["pid"].get<int>()];
  }
  EXPECT_EQ(instants, (std::map<int, int>{{0, 1}, {1, 1}, {2, 1}}));
}

// The file needs more than one 1 MB chunk, and times beyond an hour keep their nanoseconds.
TEST_F(TimelineFileTest, LosesNothingOfALongRun) {
  constexpr int kEvents = 50'000;
  constexpr Nanos kHour = 3'600'000'000'000;
  Timeline lane("compute", kEvents);
  const int name = lane.Name("step"), key = lane.Name("step");
  for (int i = 0; i < kEvents; ++i) lane.Span(name, kHour + 10 * i, kHour + 10 * i + 7, {key, i});
  TimelineFile file(path());
  file.Add(Pack({}, lane));
  file.Finish();
  const json written = Written();
  const json& events = written["traceEvents"];
  ASSERT_EQ(events.size(), kEvents + 4u);
  EXPECT_GT(fs::file_size(path()), 2u << 20);
  for (int i = 0; i < kEvents; ++i) {
    ASSERT_EQ(events[i + 4]["args"]["step"], i);
    ASSERT_NEAR(events[i + 4]["ts"].get<double>(), 3.6e9 + i * 0.01, 1e-6);
    ASSERT_EQ(events[i + 4]["dur"], 0.007);
  }
}

TEST_F(TimelineFileTest, StaysJsonWhateverANameHolds) {
  Timeline lane("\xff\n\"");
  lane.Instant(lane.Name("a\\\x01\xc3"), 0);
  TimelineFile file(path());
  file.Add(Pack({}, lane));
  file.Finish();
  EXPECT_EQ(Written()["traceEvents"].size(), 5u);
}

TEST_F(TimelineFileTest, IsThereWhenFinishedOnly) {
  {
    TimelineFile file(path());
    file.Add(SampleRank());
    EXPECT_FALSE(fs::exists(path()));
  }
  EXPECT_TRUE(fs::is_empty(folder_)) << "an unfinished file is removed";
}

TEST_F(TimelineFileTest, AFolderThatIsNotThereIsNamed) {
  try {
    TimelineFile file(folder_ / "none" / "timeline.json");
    FAIL() << "no error";
  } catch (const CheckpointError& error) {
    EXPECT_EQ(std::string(error.what()), "cannot write " +
                                             (folder_ / "none/timeline.json.tmp").string() +
                                             ": No such file or directory");
  }
}

// A file size limit acts as a full disk: the write fails, not the open.
TEST_F(TimelineFileTest, AFileThatCannotGrowIsReported) {
  const auto previous_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit previous;
  getrlimit(RLIMIT_FSIZE, &previous);
  const rlimit small{64, previous.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  std::string message;
  try {
    TimelineFile file(path());
    file.Add(SampleRank());
    file.Finish();
  } catch (const CheckpointError& error) {
    message = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &previous);
  std::signal(SIGXFSZ, previous_handler);
  EXPECT_THAT(message, HasSubstr("timeline.json.tmp: File too large"));
  EXPECT_TRUE(fs::is_empty(folder_));
}

}  // namespace
}  // namespace dtrain
