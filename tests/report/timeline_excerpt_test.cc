#include "framework/report/timeline_excerpt.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "framework/core/timeline_file.h"
#include "framework/exchange/rank_timeline.h"
#include "tests/report/report_folder.h"

namespace dtrain {
namespace {

using nlohmann::ordered_json;
using testing::ElementsAre;

constexpr Nanos kMillisecond = 1'000'000;

class TimelineExcerpt : public ReportFolder {
 protected:
  // Writes a file of `ranks` ranks and `steps` steps of 10 ms: 6 ms of computation, 4 ms of exposed
  // communication, and two all-reduces.
  std::filesystem::path Write(int ranks, int steps) const {
    const std::filesystem::path path = folder_ / "timeline.json";
    TimelineFile file(path);
    for (int rank = 0; rank < ranks; ++rank) {
      RankTimeline timeline;
      for (int step = 0; step < steps; ++step) {
        const Nanos begin = 10 * step * kMillisecond;
        timeline.Computed(begin, begin + 6 * kMillisecond, 16);
        timeline.Exposed(begin + 6 * kMillisecond, begin + 10 * kMillisecond);
        timeline.Summed(begin + 2 * kMillisecond, begin + 5 * kMillisecond, 0);
        timeline.Summed(begin + 6 * kMillisecond, begin + 10 * kMillisecond, 1);
        timeline.Sent(begin + 7 * kMillisecond, 1, 400);
      }
      file.Add(timeline.Pack({.rank = rank, .role = fmt::format("worker {}", rank)}));
    }
    file.Finish();
    return path;
  }
};

TEST_F(TimelineExcerpt, NothingWithoutTheFile) {
  EXPECT_TRUE(ExcerptOf(folder_ / "timeline.json").is_null());
}

TEST_F(TimelineExcerpt, ShowsTheSameFourStepsOfEveryRank) {
  const ordered_json excerpt = ExcerptOf(Write(3, 30));
  EXPECT_THAT(excerpt["steps"], ElementsAre(10, 13));
  EXPECT_EQ(excerpt["milliseconds"], 44);  // from 96 to 140
  EXPECT_EQ(excerpt["ranks_left_out"], 0);
  ASSERT_EQ(excerpt["ranks"].size(), 3U);
  for (const ordered_json& rank : excerpt["ranks"]) {
    ASSERT_EQ(rank["lanes"].size(), 2U);  // the lane of messages has no spans
    EXPECT_EQ(rank["lanes"][0]["name"], "compute");
    const ordered_json& buckets = rank["lanes"][1];
    EXPECT_EQ(buckets["name"], "buckets");
    // The excerpt of steps 10 to 13 begins at the end of step 9's computation and ends at the start of
    // step 14's, so it includes the last all-reduce of step 9.
    ASSERT_EQ(buckets["spans"].size(), 9U);
    EXPECT_EQ(buckets["spans"][0].dump(), R"(["sum",0.0,4.0,1.0])");
    EXPECT_EQ(buckets["spans"][1].dump(), R"(["sum",6.0,9.0,0.0])");
  }
  EXPECT_EQ(excerpt["ranks"][2]["name"], "rank 2 (worker 2)");
}

TEST_F(TimelineExcerpt, AShortRunHasFewer) {
  const ordered_json excerpt = ExcerptOf(Write(1, 2));
  EXPECT_THAT(excerpt["steps"], ElementsAre(0, 1));
  EXPECT_EQ(excerpt["ranks"][0]["lanes"][0]["spans"].size(), 4U);
}

TEST_F(TimelineExcerpt, OfManySpansTheFirst) {
  TimelineFile file(folder_ / "timeline.json");
  RankTimeline timeline;
  timeline.Computed(0, 500 * kMillisecond, 16);
  for (int i = 0; i < 450; ++i) {
    timeline.Summed(i * kMillisecond, (i + 1) * kMillisecond, 0);
  }
  file.Add(timeline.Pack({.rank = 0, .role = "worker 0"}));
  file.Finish();
  const ordered_json excerpt = ExcerptOf(folder_ / "timeline.json");
  const ordered_json& spans = excerpt["ranks"][0]["lanes"][1]["spans"];
  ASSERT_EQ(spans.size(), 400U);
  EXPECT_EQ(spans[399].dump(), R"(["sum",399.0,400.0,0.0])");
}

TEST_F(TimelineExcerpt, OfManyRanksTheFirst) {
  const ordered_json excerpt = ExcerptOf(Write(20, 12));
  EXPECT_EQ(excerpt["ranks"].size(), 16U);
  EXPECT_EQ(excerpt["ranks_left_out"], 4);
}

TEST_F(TimelineExcerpt, AnotherFileIsNone) {
  Put(".", "timeline.json", "{\"ph\":\"X\",\"name\":\"compute\",\"pid\":[]}\nno json\n");
  EXPECT_NO_THROW(ExcerptOf(folder_ / "timeline.json"));
  Put(".", "timeline.json", "");
  EXPECT_TRUE(ExcerptOf(folder_ / "timeline.json").is_null());
}

}  // namespace
}  // namespace dtrain
