#include "framework/study/job_record.h"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/study/study_records.h"
#include "tests/data/temp_folder.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class JobRecordTest : public testing::Test {
 protected:
  void Put(const std::string& file, const std::string& text) const {
    std::ofstream(folder_.path() / file) << text;
  }
  JobRecord ReadSample() const {
    Put("summary.json",
        R"({"status": "completed", "exit_code": 0, "device": "cpu", "seconds": 40, "test": {"accuracy": 0.875, "guessing": false},
            "communication": {"bytes_per_gradient": 12.5, "density": 1}, "staleness": {"mean": 2.5, "histogram": [1, 2]},
            "workers_detail": [{"own_steps": 30, "wait_seconds": 1, "compute_seconds": 5},
                               {"own_steps": 50, "wait_seconds": 1, "compute_seconds": 1}]})");
    std::string lines;
    const auto line = [&](int samples, double seconds, const std::string& split, double accuracy,
                          double loss) {
      lines += R"({"kind": "evaluation", "samples": )" + std::to_string(samples) +
               R"(, "seconds": 99, "training_seconds": )" + std::to_string(seconds) +
               (split.empty() ? "" : R"(, "split": ")" + split + "\"") + R"(, "loss": )" +
               std::to_string(loss) + R"(, "accuracy": )" + std::to_string(accuracy) + "}\n";
    };
    lines += "{\"kind\": \"step\", \"samples\": 10, \"loss\": 9}\n";
    line(100, 10, "validation", 0.25, 2);
    line(200, 20, "validation", 0.5, 1);
    line(200, 20, "test", 0.5, 1.5);
    line(300, 30, "test", 0.875, 0.75);
    Put("metrics.jsonl", lines);
    return *JobRecord::Read(folder_.path());
  }
  static double Measure(const JobRecord& record, const std::string& text) {
    return record.Measure(Expression::Parse(text));
  }

  const TempFolder folder_;
};

TEST_F(JobRecordTest, HoldsTheNumbersAndTheEvaluationsOfARun) {
  const JobRecord record = ReadSample();
  EXPECT_EQ(Measure(record, "test.accuracy"), 0.875);
  EXPECT_EQ(Measure(record, "bytes_per_gradient"), 12.5) << "the only path that ends so";
  EXPECT_EQ(Measure(record, "staleness.mean * 2"), 5);
  EXPECT_EQ(Measure(record, "gradients"), 80);
  EXPECT_EQ(Measure(record, "gradients_per_second"), 2);
  EXPECT_EQ(Measure(record, "wait_share"), 0.25);
  EXPECT_TRUE(std::isnan(Measure(record, "perplexity")));
  EXPECT_THAT(record.curve.samples, ElementsAre(100, 200, 300));
  EXPECT_THAT(record.curve.seconds, ElementsAre(10, 20, 30)) << "of training, not of the whole run";
  EXPECT_EQ(record.ValidationScore(), 0.5) << "the last of that split";
}

TEST_F(JobRecordTest, ComparesSelectionsWithTheirBounds) {
  Put("gradients.jsonl",
      "{\"step\": 1}\n"
      "{\"step\": 2, \"error_of_largest\": 0.5, \"bound_squared\": 0.25, \"selected\": 5, "
      "\"asked\": 10}\n"
      "{\"step\": 3, \"error_of_largest\": 0.5, \"bound_squared\": 1, \"selected\": 9, \"asked\": "
      "10}\n"
      "{\"step\": 4, \"error_of_largest\": 0.75, \"bound_squared\": 1, \"selected\": 20, "
      "\"asked\": 10}\n");
  const JobRecord record = ReadSample();
  EXPECT_EQ(Measure(record, "bound_ratio_max"), 2);
  EXPECT_EQ(Measure(record, "bound_ratio_median"), 0.75);
  EXPECT_EQ(Measure(record, "selected_ratio_median"), 0.9);
}

TEST_F(JobRecordTest, MeasuresOfTheCurve) {
  const JobRecord record = ReadSample();
  EXPECT_EQ(Measure(record, "seconds_to(test.accuracy, 0.5)"), 20);
  EXPECT_EQ(Measure(record, "samples_to(test.accuracy, 0.6)"), 300);
  EXPECT_TRUE(std::isinf(Measure(record, "seconds_to(test.accuracy, 0.9)")));
  EXPECT_TRUE(std::isnan(Measure(record, "seconds_to(test.bleu, 1)"))) << "never evaluated";
  EXPECT_EQ(Measure(record, "seconds_to(test.loss, 0.8)"), 30) << "a smaller loss is better";
  EXPECT_EQ(Measure(record, "seconds_to(validation.accuracy, 0.2)"), 10);
  EXPECT_EQ(Measure(record, "at_seconds(test.accuracy, 29.9)"), 0.5);
  EXPECT_EQ(Measure(record, "at_samples(test.accuracy, 300)"), 0.875);
  EXPECT_TRUE(std::isnan(Measure(record, "at_seconds(test.accuracy, 10)"))) << "not evaluated yet";
}

TEST_F(JobRecordTest, ALineHoldsAllOfIt) {
  JobRecord record = ReadSample();
  record.id = "abc";
  record.case_name = "slow \"link\"";
  record.method = "A";
  record.seed = 18446744073709551615u;
  record.tuned = {{"solver.lr", "0.1"}};
  record.exit_code = 5;
  record.revision = "1a2b3c4";
  const std::string line = record.ToLine();
  const auto again = JobRecord::FromLine(line);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->ToLine(), line);
  EXPECT_EQ(again->seed, record.seed);
  EXPECT_EQ(again->tuned, record.tuned);
  EXPECT_FALSE(again->completed());
  EXPECT_TRUE(std::isinf(Measure(*again, "seconds_to(test.accuracy, 0.5)"))) << "it diverged";
  EXPECT_TRUE(std::isnan(again->curve.values.at("test.loss")[0])) << "no value at that evaluation";
}

TEST_F(JobRecordTest, NoRunNoRecord) {
  EXPECT_FALSE(JobRecord::Read(folder_.path()));
  Put("summary.json", "{\"status\": ");
  EXPECT_FALSE(JobRecord::Read(folder_.path()));
  EXPECT_FALSE(JobRecord::FromLine("{\"kind\": \"run\"}"));
  EXPECT_FALSE(JobRecord::FromLine("no JSON"));
}

TEST_F(JobRecordTest, RecordsKeepTheOrderOfThePlanAndThoseOfOtherSettings) {
  const auto file = folder_.path() / "jobs.jsonl";
  const auto record = [&](const std::string& id) {
    JobRecord made;
    made.id = id;
    return made;
  };
  {
    StudyRecords records(file);
    for (const char* id : {"c", "a", "other", "b"}) records.Add(record(id));
    EXPECT_EQ(records.OthersThan({"b", "a", "c", "d"}), 1u);
    records.Write({"b", "a", "d", "c", "a"});
  }
  const std::string text = ReadFile(file);
  EXPECT_EQ(text, record("b").ToLine() + "\n" + record("a").ToLine() + "\n" + record("c").ToLine() +
                      "\n" + record("other").ToLine() + "\n");
  StudyRecords again(file);
  EXPECT_NE(again.Find("other"), nullptr);
  EXPECT_EQ(again.Find("d"), nullptr);
  again.Write({"b", "a", "d", "c"});
  EXPECT_EQ(ReadFile(file), text);
  Put("jobs.jsonl", text + "{\"id\": \n");
  EXPECT_THAT(MessageOf<UsageError>([&] { StudyRecords damaged(file); }),
              HasSubstr("jobs.jsonl:5"));
}

}  // namespace
}  // namespace dtrain
