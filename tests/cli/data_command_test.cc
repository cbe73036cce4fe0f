// Tests `dtrain data list|fetch|verify` on a folder without downloads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "framework/data/files/catalog.h"
#include "tests/cli/command_outcome.h"
#include "tests/data/temp_folder.h"

namespace dtrain {
namespace {

using ::testing::HasSubstr;

class DataCommand : public ::testing::Test {
 protected:
  CommandOutcome Data(std::vector<std::string> words) const {
    words.insert(words.begin(), "data");
    words.insert(words.end(), {"--root", root_.path().string()});
    return RunCommand(words);
  }
  // Puts files with the names of MNIST's there, which are not MNIST's.
  void PutMnist() const {
    for (const char* name : {"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz",
                             "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"}) {
      root_.Write(std::string("mnist/") + name, "none");
    }
  }

  const TempFolder root_;
};

TEST_F(DataCommand, ListSaysOfEachSetWhereItIs) {
  PutMnist();
  const CommandOutcome text = Data({"list"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_EQ(text.out, DatasetTable(ListDatasets(root_.path().string())));
  const CommandOutcome outcome = Data({"list", "--json"});
  EXPECT_EQ(outcome.code, 0);
  int found = 0;
  for (const auto& set : IndentedJson(outcome.out)) {
    if (set["name"] == "mnist") {
      EXPECT_EQ(set["own"], false);
      EXPECT_EQ(set["classes"], 10);
      EXPECT_EQ(set["train_samples"], 60000);
      EXPECT_EQ(set["test_samples"], 10000);
      EXPECT_EQ(set["files"], 4);
      EXPECT_EQ(set["files_here"], 4);
      EXPECT_EQ(set["folder"], (root_ / "mnist").string());
      ++found;
    } else if (set["name"] == "csv") {
      EXPECT_EQ(set["own"], true);
      ++found;
    }
  }
  EXPECT_EQ(found, 2);
}

TEST_F(DataCommand, FetchSaysWhereThereIsNothingToFetch) {
  const CommandOutcome made = Data({"fetch", "digits"});
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(made.out, "digits is made on the spot: there is nothing to fetch\n");
  EXPECT_EQ(Data({"fetch", "csv"}).out, "csv takes your own files: there is nothing to fetch\n");
  EXPECT_EQ(IndentedJson(Data({"fetch", "digits", "--json"}).out),
            (nlohmann::ordered_json{{"folder", ""}, {"name", "digits"}}));
}

TEST_F(DataCommand, VerifyNamesTheFilesThatAreNotThePublishers) {
  PutMnist();
  const CommandOutcome text = Data({"verify", "mnist"});
  EXPECT_EQ(text.code, 3);
  EXPECT_EQ(text.out, VerifyText(VerifyDataset("mnist", root_.path().string())));
  EXPECT_THAT(text.out, HasSubstr("train-images-idx3-ubyte.gz"));
  const CommandOutcome outcome = Data({"verify", "mnist", "--json"});
  EXPECT_EQ(outcome.code, 3);
  const auto json = IndentedJson(outcome.out);
  EXPECT_EQ(json["name"], "mnist");
  EXPECT_EQ(json["ok"], false);
  EXPECT_EQ(json["folder"], (root_ / "mnist").string());
  ASSERT_EQ(json["files"].size(), 4U);
  for (const auto& file : json["files"]) EXPECT_NE(file["problem"], "") << file["name"];
  EXPECT_EQ(Data({"verify", "digits"}).code, 0) << "it has no files";
}

}  // namespace
}  // namespace dtrain
