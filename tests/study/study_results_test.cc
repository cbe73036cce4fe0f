#include "framework/study/study_results.h"

#include <gmock/gmock.h>

#include <cmath>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/study/study_page.h"
#include "framework/study/study_tables.h"
#include "tests/study/study_files.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class StudyResultsTest : public StudyTest {
 protected:
  // Gives each result run the accuracies that `of` says; none: the run is missing.
  StudyResults Make(const std::string& more,
                    const std::function<std::vector<double>(const StudyRun&)>& of) {
    study_ = Read(more);
    study_.measures.push_back({"to_half", Expression::Parse("seconds_to(test.accuracy, 0.5)")});
    plan_.emplace(study_, "out", "");
    for (const StudyRun& run : plan_->ResultRuns(records_)) {
      if (const auto accuracies = of(run); !accuracies.empty())
        records_.Add(Record(run, accuracies));
    }
    return MakeResults(study_, *plan_, records_);
  }

  Study study_;
  std::optional<StudyPlan> plan_;
  StudyRecords records_{folder_.path() / "jobs.jsonl"};
};

TEST_F(StudyResultsTest, CellsHaveTheMedianAndTheRangeOfTheSeeds) {
  const StudyResults results = Make("seeds: [1, 2, 3, 4]\n", [](const StudyRun& run) {
    const double last = run.method == 0 ? 0.6 + 0.01 * static_cast<double>(run.seed) : 0.25;
    return run.seed == 4 && run.method == 1 ? std::vector<double>() : std::vector{0.1, last};
  });
  ASSERT_EQ(results.rows.size(), 2u);
  EXPECT_EQ(results.rows[0].cells[0].Text(), "0.625 [0.61, 0.64]");
  EXPECT_EQ(results.rows[0].cells[1].Text(), "2");
  EXPECT_EQ(results.rows[1].cells[0].Text(), "0.25");
  EXPECT_EQ(results.rows[1].cells[1].Text(), "inf") << "a target that was missed";
  EXPECT_EQ(results.rows[1].runs, 3u);
  EXPECT_EQ(results.rows[1].asked, 4u);
  EXPECT_EQ(results.ended, 7u);
  EXPECT_THAT(results.missing, ElementsAre("B, seed 4"));
}

TEST_F(StudyResultsTest, VerdictsOfClaims) {
  const std::string claims =
      "seeds: [1]\ncases: {c: {batch: 32}, d: {batch: 64}}\nexpect:\n"
      "  - {claim: all, value: test.accuracy(A) - test.accuracy(B), at_least: 0.05}\n"
      "  - {claim: part, value: test.accuracy(A) - test.accuracy(B), at_most: 0.15}\n"
      "  - {claim: one case, value: 'test.accuracy(A, d) / test.accuracy(A, c)', about: 1.1, "
      "within: 0.05}\n"
      "  - {claim: none, value: test.accuracy(A), at_least: 0.9, note: too few epochs}\n"
      "  - {claim: other, untested: no data}\n";
  const StudyResults results = Make(claims, [](const StudyRun& run) {
    return std::vector{0.5 +
                       (run.method == 0 ? 0.1 + 0.1 * static_cast<double>(run.case_index) : 0)};
  });
  std::vector<std::string> verdicts;
  for (const ClaimResult& result : results.claims) verdicts.push_back(result.Text());
  EXPECT_THAT(verdicts, ElementsAre("holds", "holds in part", "does not hold", "does not hold",
                                    "cannot be tested here"));
  EXPECT_EQ(results.claims[0].ours, "0.1 to 0.2");
  EXPECT_EQ(results.claims[1].detail, "in 1 of 2 cases");
  EXPECT_EQ(results.claims[2].ours, "1.167");
  EXPECT_EQ(results.claims[2].bound, "1.1 within 5 %");
  EXPECT_EQ(results.claims[2].detail, "") << "a claim that names its case";
  const std::string table = MarkdownTable(study_, *plan_, results);
  EXPECT_THAT(table,
              AllOf(HasSubstr("does not hold (in 0 of 2 cases). too few epochs"),
                    HasSubstr("cannot be tested here (no data)"), Not(HasSubstr("Missing"))));
}

TEST_F(StudyResultsTest, AClaimAboutMissingRunsSaysSo) {
  const std::string claim =
      "seeds: [1, 2]\nexpect: [{claim: x, value: test.accuracy(A), at_least: 0}]\n";
  EXPECT_EQ(Make(claim, [](const StudyRun&) { return std::vector<double>(); }).claims[0].verdict,
            ClaimVerdict::kMissing);
  const StudyResults some = Make(claim, [](const StudyRun& run) {
    return run.seed == 1 ? std::vector{0.5} : std::vector<double>();
  });
  EXPECT_EQ(some.claims[0].verdict, ClaimVerdict::kHolds);
  EXPECT_EQ(some.claims[0].Text(), "holds so far");
  EXPECT_EQ(some.claims[0].detail, "1 of 2 runs");
  EXPECT_THAT(MarkdownTable(study_, *plan_, some),
              HasSubstr("Missing: 2 runs: A, seed 2; B, seed 2."));
}

TEST_F(StudyResultsTest, ADivergedRunIsNoFastOneAndNoRatioOfMissesHolds) {
  const std::string study =
      "seeds: [1, 2]\nexpect:\n  - {claim: sooner, value: to_half(A) / to_half(B), at_most: 1}\n";
  std::string file = Write(study);
  std::string text = ReadFile(file);
  text.replace(
      text.find("[test.accuracy]"), 15,
      "{accuracy: test.accuracy, seconds: seconds, to_half: 'seconds_to(test.accuracy, 0.5)'}");
  std::ofstream(file) << text << "rank_by: seconds\n";
  study_ = ReadStudy(file);
  plan_.emplace(study_, "out", "");
  for (const StudyRun& run : plan_->ResultRuns(records_)) {
    JobRecord record = Record(run, {0.1, 0.4});
    record.numbers["seconds"] = 10;
    if (run.method == 0 && run.seed == 1) {
      record.exit_code = 5;
      record.numbers["seconds"] = 1;
    }
    records_.Add(record);
  }
  const StudyResults results = MakeResults(study_, *plan_, records_);
  EXPECT_EQ(results.rows[0].failed, 1u);
  EXPECT_EQ(results.rows[0].cells[0].Text(), "0.4 (1 of 2)") << "one diverged";
  EXPECT_EQ(results.rows[0].cells[1].Text(), "inf [10, inf]");
  EXPECT_NEAR(results.profiles[0].score, 0.5, 1e-12);
  EXPECT_NEAR(results.profiles[1].score, 1, 1e-12);
  EXPECT_EQ(results.claims[0].Text(), "does not hold") << "neither reached it";
  EXPECT_EQ(results.claims[0].ours, "none");
  EXPECT_THAT(results.claims[0].detail, HasSubstr("there is no value"));
}

// Two workloads: A needs 1 and 4 s, B 2 s and never.
TEST_F(StudyResultsTest, PerformanceProfilesCountAMissAsInfinite) {
  const StudyResults results = Make("seeds: [1, 2]\n", [](const StudyRun& run) {
    const int steps = run.method == 0 ? (run.seed == 1 ? 1 : 4) : (run.seed == 1 ? 2 : 99);
    std::vector<double> accuracies;
    for (int i = 1; i <= 5; ++i) accuracies.push_back(i >= steps ? 0.5 : 0.1);
    return accuracies;
  });
  EXPECT_TRUE(results.profiles.empty()) << "the study has no rank_by";
  study_.rank_by = "to_half";
  const StudyResults ranked = MakeResults(study_, *plan_, records_);
  ASSERT_EQ(ranked.profiles.size(), 2u);
  EXPECT_THAT(ranked.profiles[0].share, ElementsAre(0.5, 0.5, 1, 1)) << "best in both";
  EXPECT_NEAR(ranked.profiles[0].score, 1, 1e-12);
  EXPECT_THAT(ranked.profiles[1].tau, ElementsAre(2, 2, 4));
  EXPECT_THAT(ranked.profiles[1].share, ElementsAre(0, 0.5, 0.5));
  EXPECT_NEAR(ranked.profiles[1].score, 0.5 * 2 / 3, 1e-12);
}

TEST_F(StudyResultsTest, TablesEscapeWhatTheirFormatsReserve) {
  std::ofstream(folder_.path() / "odd.yaml")
      << "title: \"50 % | <b> & _\"\nrun: quickstart\nseeds: [1]\nmeasure: [test.accuracy]\n"
         "methods: {\"A, \u00e4|_%</script>\": {}}\n";
  const Study study = ReadStudy(folder_.path() / "odd.yaml");
  const StudyPlan plan = Plan(study);
  StudyRecords records(folder_.path() / "jobs.jsonl");
  for (const StudyRun& run : plan.ResultRuns(records)) records.Add(Record(run, {0.1234567890123}));
  const StudyResults results = MakeResults(study, plan, records);
  EXPECT_THAT(MarkdownTable(study, plan, results),
              HasSubstr("| A, \u00e4\\|_%</script> | 1 | 0.1235 |"));
  EXPECT_THAT(LatexTable(study, results), HasSubstr("A, \u00e4|\\_\\%</script> & 1 & 0.1235 \\\\"));
  EXPECT_THAT(
      ResultsCsv(study, plan.AllRuns(records), records),
      AllOf(HasSubstr("phase,case,method,seed,exit_code,test.accuracy,revision,device,id\n"),
            HasSubstr("result,,\"A, \u00e4|_%</script>\",1,0,0.1234567890123,")));
  const std::string page = StudyPage(study, plan, records, results);
  EXPECT_THAT(page, AllOf(HasSubstr("\\u003c/script>"), HasSubstr("\"curves\":[{")));
}

TEST(ShortNumbers, HaveFourDigits) {
  EXPECT_EQ(ShortNumber(0.98714), "0.9871");
  EXPECT_EQ(ShortNumber(0.5), "0.5");
  EXPECT_EQ(ShortNumber(0), "0");
  EXPECT_EQ(ShortNumber(1234.56), "1235");
  EXPECT_EQ(ShortNumber(123456), "123456");
  EXPECT_EQ(ShortNumber(-12.345), "-12.35");
  EXPECT_EQ(ShortNumber(0.00123456), "0.001235");
  EXPECT_EQ(ShortNumber(1.5e9), "1.5e+09");
  EXPECT_EQ(ShortNumber(1.5e-6), "1.5e-06");
  EXPECT_EQ(ShortNumber(std::nan("")), "-");
  EXPECT_EQ(ShortNumber(HUGE_VAL), "inf");
}

}  // namespace
}  // namespace dtrain
