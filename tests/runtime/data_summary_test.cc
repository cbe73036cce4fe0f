// Tests what a run says of the user's own data: one line, the part of the summary, and warnings.
#include "framework/setup/data_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/results/summary.h"
#include "tests/data/table_files.h"
#include "tests/data/temp_folder.h"
#include "tests/support/data_source.h"

namespace dtrain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

class DataSummaryTest : public testing::Test {
 protected:
  // Describes two tables of these lines.  `keys` are further ones of section data.
  DataSummary OfTables(const std::string& train, const std::string& test,
                       const std::string& keys = "") {
    folder_.Write("train.csv", train);
    folder_.Write("test.csv", test);
    return Of("csv", fmt::format("train: {}, test: {}{}", Path("train.csv"), Path("test.csv"),
                                 keys.empty() ? "" : ", " + keys));
  }
  DataSummary Of(const std::string& name, const std::string& keys) const {
    return DescribeData(*SourceOf(name, keys)->Load("", 1)).value();
  }
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

  TempFolder folder_;
};

TEST_F(DataSummaryTest, ALineSaysHowATableWasRead) {
  const DataSummary data =
      OfTables("a,b,kind\n1,2,cat\n3,5,dog\n5,6,cat\n", "a,b,kind\n3,4,dog\n2,9,cat\n");
  EXPECT_THAT(data.warnings, IsEmpty());
  EXPECT_EQ(TextOf(data, "csv"),
            "csv " + Path("train.csv") +
                ": 3 training and 2 test samples of 2 columns (a, b); a header (guessed), fields "
                "separated by ','; label 'kind' is a class; classes: 2, fewest training samples: "
                "dog (1), cat (2)");
  const DataSummary ignored =
      OfTables("a;b;c;y\n1;2;3;0.5\n3;5;4;1.5\n", "a;b;c;y\n3;4;5;2.5\n", "ignore: [b]");
  EXPECT_EQ(TextOf(ignored, "csv"),
            "csv " + Path("train.csv") +
                ": 2 training and 1 test samples of 2 columns (a, c); a header (guessed), fields "
                "separated by ';'; label 'y' is a number; left out: column 'b'");
}

TEST_F(DataSummaryTest, TheSummaryHasTheSameOfItInParts) {
  Summary summary;
  const std::string train = "a,b,kind\n1,2,cat\n3,2,dog\n5,2,cat\n";
  const std::string test = "a,b,kind\n3,4,dog\n2,9,cat\n";
  summary.data = OfTables(train, test);
  const auto json = nlohmann::json::parse(ToJson(summary))["data"];
  EXPECT_EQ(json["files"], Path("train.csv"));
  EXPECT_EQ(json["samples"], "3 training and 2 test samples");
  EXPECT_EQ(json["sample"], "2 columns (a, b)");
  EXPECT_EQ(json["classes"], 2);
  EXPECT_EQ(json["fewest_training_samples"].dump(), R"({"cat":2,"dog":1})");
  EXPECT_THAT(json["warnings"].dump(), HasSubstr("column 'b' has one value in all samples"));
  EXPECT_FALSE(json.contains("left_out"));
  summary.data = OfTables(train, test, "ignore: [b]");
  EXPECT_EQ(nlohmann::json::parse(ToJson(summary))["data"]["left_out"].dump(), R"(["column 'b'"])");
  EXPECT_FALSE(nlohmann::json::parse(ToJson(Summary())).contains("data"));
}

TEST_F(DataSummaryTest, FiveClassesWithTheFewestTrainingSamplesAreNamed) {
  std::string lines;
  for (int label = 0; label < 7; ++label) {
    for (int i = 0; i < 10 - label; ++i) lines += fmt::format("{},{}\n", 0.5 + i, label);
  }
  const DataSummary data = OfTables(lines, lines);
  EXPECT_EQ(data.classes, 7);
  EXPECT_THAT(data.fewest,
              ElementsAre(Pair("6", 4), Pair("5", 5), Pair("4", 6), Pair("3", 7), Pair("2", 8)));
  EXPECT_THAT(data.warnings, IsEmpty());
}

TEST_F(DataSummaryTest, WarnsOfClassesWithoutSamples) {
  const DataSummary data = OfTables("a,b,kind\n1,2,cat\n3,5,dog\n", "a,b,kind\n3,4,dog\n",
                                    "class_names: [cat, cow, dog]");
  EXPECT_THAT(data.warnings, ElementsAre("a class has no training sample: cow",
                                         "classes have no test sample: cat, cow"));
  EXPECT_THAT(data.fewest, ElementsAre(Pair("cow", 0), Pair("cat", 1), Pair("dog", 1)));
}

TEST_F(DataSummaryTest, WarnsOfLabelsThatBeginAtOne) {
  const DataSummary data = OfTables("1,2,1\n3,5,2\n4,7,1\n", "3,4,1\n1,1,2\n");
  EXPECT_THAT(data.warnings,
              ElementsAre("the labels begin at 1, and classes are counted from 0: class 0 has no "
                          "sample, and the model needs 3 outputs; subtract 1 from the labels"));
}

TEST_F(DataSummaryTest, WarnsOfLabelsThatMayBeNumbers) {
  const DataSummary data = OfTables("1,2,50\n3,5,51\n4,7,52\n", "3,4,50\n1,1,51\n2,3,52\n");
  EXPECT_THAT(data.warnings,
              ElementsAre(HasSubstr("; subtract 50 from the labels, or set data.task: regression "
                                    "if they are numbers")));
}

TEST_F(DataSummaryTest, WarnsOfLabelsThatAreAllTheSame) {
  EXPECT_THAT(OfTables("1,2,cat\n3,5,cat\n", "3,4,cat\n").warnings,
              ElementsAre("all samples are of one class: 'cat'"));
  EXPECT_THAT(
      OfTables("1,2,0.5\n3,5,0.5\n", "3,4,1.5\n").warnings,
      ElementsAre("the label has one value in all samples: nothing can be learned from it"));
  folder_.Write("x.npy", NpyOf<float>("<f4", "3, 2", {1, 2, 3, 5, 5, 6}));
  folder_.Write("y.npy", NpyOf<float>("<f4", "3, 2", {1, 7, 2, 7, 3, 7}));
  EXPECT_THAT(Of("npy", fmt::format("train: {0}, train_labels: {1}, test: {0}, test_labels: {1}",
                                    Path("x.npy"), Path("y.npy")))
                  .warnings,
              ElementsAre(HasSubstr("number 2 of the label has one value")));
}

// The first samples of a table that is sorted downwards do not have the first classes.
TEST_F(DataSummaryTest, LabelsBeginWhereThoseOfAllSamplesDo) {
  folder_.Write("train.csv", "9,2,2\n3,5,2\n1,2,1\n3,5,0\n");
  folder_.Write("test.csv", "1,2,2\n3,5,1\n4,4,0\n");
  const auto source =
      SourceOf("csv", fmt::format("train: {}, test: {}", Path("train.csv"), Path("test.csv")));
  EXPECT_THAT(
      DescribeData(*LimitSource(source, 2)->Load("", 1))->warnings,
      ElementsAre("classes have no training sample: 0, 1", "a class has no test sample: 0"));
}

TEST_F(DataSummaryTest, WarnsOfOneHotLabels) {
  folder_.Write("x.npy", NpyOf<float>("<f4", "3, 2", {1, 2, 3, 5, 5, 6}));
  folder_.Write("y.npy", NpyOf<float>("<f4", "3, 2", {1, 0, 0, 1, 1, 0}));
  const std::string keys = fmt::format("train: {0}, train_labels: {1}, test: {0}, test_labels: {1}",
                                       Path("x.npy"), Path("y.npy"));
  const DataSummary data = Of("npy", keys);
  EXPECT_EQ(data.classes, 0);
  EXPECT_THAT(data.fewest, IsEmpty());
  EXPECT_THAT(data.warnings, ElementsAre(HasSubstr("each label is one 1 among 0s")));
  folder_.Write("y.npy", NpyOf<float>("<f4", "3, 2", {1, 0, 0, 1, 1, 1}));
  EXPECT_THAT(Of("npy", keys).warnings, IsEmpty());
}

TEST_F(DataSummaryTest, SaysNothingOfAPublishedSet) {
  const auto digits = SourceOf("digits", "train_samples: 20, test_samples: 10")->Load("", 1);
  EXPECT_FALSE(DescribeData(*digits).has_value());
}

}  // namespace
}  // namespace dtrain
