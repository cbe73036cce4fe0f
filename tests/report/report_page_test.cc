#include "framework/report/report_page.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "framework/core/error.h"
#include "framework/report/assets.h"
#include "framework/results/metrics.h"
#include "framework/results/rank_times.h"
#include "tests/report/report_folder.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr char kDataBegin[] = R"(<script type="application/json" id="data">)";

// Returns the data as a browser reads it: up to the first "</script".
std::string DataText(const std::string& page) {
  const size_t begin = page.find(kDataBegin) + sizeof(kDataBegin) - 1;
  return page.substr(begin, page.find("</script", begin) - begin);
}

class ReportPageTest : public ReportFolder {
 protected:
  json DataOf(const std::vector<std::string>& runs) const {
    std::vector<std::filesystem::path> folders;
    for (const std::string& run : runs) folders.push_back(folder_ / run);
    return json::parse(DataText(ReportPage(folders)));
  }
};

TEST_F(ReportPageTest, HoldsWhatTheFilesSay) {
  Put("a", "config.yaml", "batch: 64\nsolver: {name: sgd, lr: 0.01}\nlist: [1, 2]\n");
  Put("a", "metrics.jsonl",
      "{\"kind\":\"step\",\"step\":20,\"loss\":2.5,\"lr\":0.01}\n"
      "{\"kind\":\"evaluation\",\"step\":20,\"loss\":2.25,\"accuracy\":0.5,\"split\":"
      "\"validation\"}\n");
  Put("a", "summary.json", "{\"status\":\"completed\",\"steps\":20}");
  Put("a", "plan.json", "{\"buckets\":[{\"begin\":0,\"end\":9}],\"isa\":\"café\"}");
  EXPECT_THAT(ReportPage({folder_ / "a"}), HasSubstr("\"isa\":\"café\""));
  const json run = DataOf({"a"})["runs"][0];
  EXPECT_EQ(run["name"], "a");
  EXPECT_EQ(run["state"], "completed");
  EXPECT_EQ(run["config"].dump(),
            R"([["batch","64"],["solver.name","sgd"],["solver.lr","0.01"],["list","[1, 2]"]])");
  EXPECT_EQ(run["steps"]["loss"][0], 2.5);
  EXPECT_EQ(run["evaluations"][0]["accuracy"], 0.5);
  EXPECT_EQ(run["evaluations"][0]["split"], "validation");
  EXPECT_EQ(run["plan"]["buckets"][0]["end"], 9);
}

TEST_F(ReportPageTest, SaysThatAnAccuracyIsThatOfGuessing) {
  const auto notes_of = [&](const std::string& test) {
    Put("a", "summary.json", R"({"status": "completed", "test": )" + test + "}");
    return DataOf({"a"})["runs"][0]["notes"].dump();
  };
  EXPECT_THAT(notes_of(R"({"accuracy": 0.1135, "guess_accuracy": 0.1135, "guessing": true})"),
              HasSubstr("is that of guessing: the same answer for every sample has 11.35 %"));
  EXPECT_THAT(notes_of(R"({"loss": 2.5, "guess_loss": 2, "guessing": true})"),
              HasSubstr("the test loss is that of guessing"));
  for (const char* test : {R"({"accuracy": 0.9, "guess_accuracy": 0.1135})", "3",
                           R"({"guessing": true})", R"({"guess_accuracy": 0.1, "guessing": 1})"}) {
    EXPECT_EQ(notes_of(test), "[]") << test;
  }
}

TEST_F(ReportPageTest, OfLongListsItSaysWhatIsLeftOut) {
  const auto write = [this](const std::string& run, int steps, int evaluations, int buckets) {
    std::string metrics;
    for (int i = 1; i <= steps; ++i) {
      metrics += fmt::format("{{\"kind\":\"step\",\"step\":{}}}\n", i);
    }
    for (int i = 1; i <= evaluations; ++i) {
      metrics += fmt::format("{{\"kind\":\"evaluation\",\"step\":{}}}\n", i);
    }
    Put(run, "metrics.jsonl", metrics);
    json plan;
    for (int i = 0; i < buckets; ++i) plan["buckets"].push_back({{"begin", i}});
    Put(run, "plan.json", plan.dump());
  };
  write("most", 600, 2000, 500);
  write("more", 601, 2001, 501);
  const json runs = DataOf({"most", "more"})["runs"];
  EXPECT_EQ(runs[0]["notes"].size(), 0U);
  EXPECT_THAT(runs[1]["notes"], testing::ElementsAre("the last 2000 of 2001 evaluations are shown",
                                                     "the first 500 of 501 buckets are shown"));
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(runs[i]["steps"]["joined"], i + 1);
    ASSERT_EQ(runs[i]["evaluations"].size(), 2000U);
    EXPECT_EQ(runs[i]["evaluations"][0]["step"], i + 1);
    EXPECT_EQ(runs[i]["evaluations"][0]["split"], "test") << "the default";
    ASSERT_EQ(runs[i]["plan"]["buckets"].size(), 500U);
    EXPECT_EQ(runs[i]["plan"]["buckets"][499]["begin"], 499);
  }
}

// Names and config text are put into the page as data: none of their text can end the element that
// holds it, and the script writes them as text only.
TEST_F(ReportPageTest, WhatARunBringsStaysText) {
  const std::string evil = "<script>alert(1)<b>", text = "</script><img src=x onerror=alert(2)>";
  Put(evil, "config.yaml", "output: '" + text + "'\n'<!--key': 1\n");
  Put(evil, "summary.json", json{{"status", "<b>"}, {"model", text}}.dump());
  Put(evil, "metrics.jsonl",
      json{{"kind", "evaluation"}, {"split", text}, {"loss", 1}, {"<!--<script>", 2}}.dump() +
          "\n");
  Put(evil, "timeline.json",
      "{\"traceEvents\":[\n{\"ph\":\"X\",\"name\":\"compute\",\"pid\":0,\"tid\":0,\"ts\":1,\"dur\":"
      "2},\n"
      "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":0,\"tid\":0,\"args\":{\"name\":\"</"
      "script>\"}}\n]}");
  const std::string page = ReportPage({folder_ / evil});
  const std::string data = DataText(page);
  EXPECT_THAT(data, Not(HasSubstr("<")));
  const json run = json::parse(data)["runs"][0];
  EXPECT_EQ(run["name"], evil);
  EXPECT_EQ(run["config"][0][1], text);
  EXPECT_EQ(run["config"][1][0], "<!--key");
  EXPECT_EQ(run["timeline"]["ranks"][0]["lanes"][0]["name"], "</script>");
  EXPECT_THAT(page, Not(HasSubstr(text)));
  EXPECT_THAT(page, Not(HasSubstr(evil)));
  for (const std::string_view script :
       {assets::kElements, assets::kCharts, assets::kSections, assets::kReport}) {
    EXPECT_THAT(std::string(script),
                Not(testing::ContainsRegex("innerHTML|outerHTML|document.write|"
                                           "insertAdjacentHTML|eval\\(")));
  }
}

TEST_F(ReportPageTest, NeedsNothingElse) {
  Put("a", "metrics.jsonl", "");
  const std::string page = ReportPage({folder_ / "a"});
  EXPECT_THAT(page, Not(HasSubstr("<!-- dtrain:")));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_THAT(page, HasSubstr("Chart.js v"));
  const std::regex loads(R"rx((src|href)\s*=\s*["']?(https?:|//|file:)|@import|url\()rx");
  std::string own = page;
  own.erase(own.find(assets::kChartLibrary), assets::kChartLibrary.size());
  EXPECT_FALSE(std::regex_search(own, loads));
}

TEST_F(ReportPageTest, ReloadsOnlyWhereAsked) {
  Put("a", "metrics.jsonl", "");
  EXPECT_THAT(ReportPage({folder_ / "a"}), Not(HasSubstr("http-equiv=\"refresh\"")));
  EXPECT_THAT(ReportPage({folder_ / "a"}, {.reload_seconds = 7}),
              HasSubstr(R"(<meta http-equiv="refresh" content="7">)"));
}

TEST_F(ReportPageTest, ALongRunOfManyWorkersFitsIntoTwoMegabytes) {
  Put("a", "config.yaml", "batch: 64\n");
  MetricsWriter metrics(folder_ / "a/metrics.jsonl");
  RankTimesWriter ranks(folder_ / "a/ranks.jsonl", std::nullopt, 0);
  for (int64_t step = 1; step <= 10'000; ++step) {
    const MetricsPoint at{step / 100, step, 64 * step, 1.234567 * static_cast<double>(step)};
    metrics.Write(StepMetrics{at, 1 / 7.0, 0.012345678, 12345.678901, 0.00123456789});
    if (step % 100 != 0) continue;
    metrics.Write(EvaluationMetrics{.at = at, .loss = 1 / 3.0, .accuracy = 1 / 9.0});
    for (int rank = 0; rank < 16; ++rank) {
      StepWindows windows;
      for (int i = 0; i < 100; ++i) {
        windows.Add(at.seconds + i / 7.0, 0.1234567 + rank / 13.0, 0.0234567 + i / 17.0);
      }
      ranks.Write(step, {.rank = rank, .role = "worker", .node = "cn", .windows = windows.Take()});
    }
  }
  const std::string page = ReportPage({folder_ / "a"});
  EXPECT_LT(page.size(), 2'000'000U);
  const json run = json::parse(DataText(page))["runs"][0];
  EXPECT_EQ(run["steps"]["rows"], 10'000);
  EXPECT_EQ(run["steps"]["joined"], 17);  // the page shows this
  EXPECT_EQ(run["ranks"].size(), 16U);
}

TEST_F(ReportPageTest, DamageIsReportedNotFatal) {
  Put("a", "config.yaml", "a: [1\n");
  Put("a", "summary.json", "{\"status\":");
  Put("a", "plan.json", "[]");
  Put("a", "metrics.jsonl",
      "nonsense\n{\"kind\":7,\"step\":{}}\n{\"kind\":\"step\",\"step\":\"x\"}\n");
  Put("a", "ranks.jsonl", "\xff\xfe\n");
  const json run = DataOf({"a"})["runs"][0];
  EXPECT_EQ(run["state"], "unfinished");
  EXPECT_THAT(run["notes"], testing::ElementsAre("config.yaml is damaged",
                                                 "metrics.jsonl: 1 line could not be read",
                                                 "ranks.jsonl: 1 line could not be read"));
}

TEST_F(ReportPageTest, AFolderThatIsNoRun) {
  EXPECT_THAT(MessageOf<UsageError>([&] { ReportPage({folder_ / "none"}); }),
              HasSubstr("none: no such folder"));
  EXPECT_THAT(MessageOf<UsageError>([&] { ReportPage({folder_}); }),
              HasSubstr("is not a run folder"));
}

}  // namespace
}  // namespace dtrain
