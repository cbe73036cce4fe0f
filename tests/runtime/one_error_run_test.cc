// One error in a config gives one message: other keys are not checked against a default that the user did not mean.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "framework/core/error.h"
#include "framework/setup/run_config.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// has lines 1 to 6
constexpr char kGssp[] =
    "model: {name: lenet5}\n"
    "data: {name: digits}\n"
    "epochs: 3\n"
    "solver: {name: sgd, lr: 0.1, warmup_epochs: 2, schedule: {name: step, at: [1, 2]}}\n"
    "strategy: {name: gssp, servers: 4, groups: 4, staleness: 3}\n"
    "cluster: {workers: 16, per_node: 4, slowdown: [1, 1.3, 1.6, 2]}\n";

std::string OneErrorError(const std::string& right, const std::string& wrong,
                          const std::string& more = "") {
  std::string text = std::string(kGssp) + more;
  text.replace(text.find(right), right.size(), wrong);
  return WhatOf<ConfigError>([&] {
    auto document = config::Document::FromText(text, "run.yaml");
    ReadRunConfig(document);
  });
}

struct Edit {
  std::string right, wrong, where;
};

class OneErrorInARun : public ::testing::TestWithParam<Edit> {};

TEST_P(OneErrorInARun, IsOneError) {
  const auto& [right, wrong, where] = GetParam();
  EXPECT_EQ(OneErrorError("epochs", "epochs"), "no error");
  EXPECT_THAT(OneErrorError(right, wrong),
              AllOf(HasSubstr("run.yaml:" + where + ":"), HasSubstr("1 error;")));
}

INSTANTIATE_TEST_SUITE_P(
    All, OneErrorInARun,
    ::testing::Values(Edit{"cluster", "clustr", "6"}, Edit{"workers", "wokers", "6"},
                      Edit{"workers: 16", "workers: many", "6"},
                      Edit{"workers: 16", "workers: -1", "6"},
                      Edit{"workers: 16", "workers: {a: 1}", "6"},
                      Edit{"name: gssp", "nmae: gssp", "5"}, Edit{"name: gssp", "name: gsp", "5"},
                      Edit{"servers", "severs", "5"}, Edit{"servers: 4", "servers: four", "5"},
                      Edit{"at: ", "att: ", "4"}, Edit{"at: [1, 2]", "at: 2", "4"},
                      Edit{"at: [1, 2]", "at: {a: 1}", "4"}, Edit{"name: step", "nam: step", "4"},
                      Edit{"schedule", "shedule", "4"}, Edit{"epochs: 3", "epochs: ", "3"},
                      Edit{"epochs: 3", "epoch: 3", "3"}, Edit{"strategy", "stratgy", "5"},
                      Edit{"slowdown", "slowdwn", "6"}, Edit{"lenet5", "lenet55", "1"},
                      Edit{"digits", "digts", "2"}));

TEST(OneErrorInARun, OfTwoBothAreReported) {
  EXPECT_THAT(OneErrorError("workers: 16", "wokers: 16", "batch: 8\ntimelin: true\n"),
              AllOf(HasSubstr("'wokers'"), HasSubstr("'timelin'"), HasSubstr("2 errors;")));
  // Keys that do not depend on the misspelt one are still checked.
  EXPECT_THAT(
      OneErrorError("warmup_epochs: 2", "warmup_epochs: 5", "timelin: true\n"),
      AllOf(HasSubstr("warm-up of 5 epochs"), HasSubstr("'timelin'"), HasSubstr("2 errors;")));
  EXPECT_THAT(OneErrorError("servers: 4", "servers: 17", "bacth: 8\n"),
              AllOf(HasSubstr("17 group servers"), HasSubstr("'bacth'"), HasSubstr("2 errors;")));
  EXPECT_THAT(OneErrorError("staleness: 3", "stalenes: 3", "compress: {name: topk, densty: 1}\n"),
              AllOf(HasSubstr("'stalenes'"), HasSubstr("takes no compressor"),
                    HasSubstr("'densty'"), HasSubstr("3 errors;")));
}

// Which workers may die depends on where servers and nodes are, and on no other key of the strategy.
TEST(OneErrorInARun, ADeathIsCheckedBesideAnErrorInTheStrategy) {
  const auto errors = [](const std::string& strategy, const std::string& death) {
    return WhatOf<ConfigError>([&] {
      auto document = config::Document::FromText(
          "model: lenet5\ndata: digits\nstrategy: {" + strategy +
              "}\ncluster: {workers: 64, deaths: [{" + death + ", at_step: 5}]}\n",
          "run.yaml");
      ReadRunConfig(document);
    });
  };
  EXPECT_THAT(
      errors("name: ps_asp, damping: invers", "worker: 99"),
      AllOf(HasSubstr("run.yaml:3:"), HasSubstr("damping"),
            HasSubstr("run.yaml:4:33: there is no worker 99 among 64"), HasSubstr("2 errors;")));
  EXPECT_THAT(errors("name: ps_ssp, staleness: -1", "worker: 99"),
              AllOf(HasSubstr("staleness"), HasSubstr("a death would stop strategy 'ps_ssp'"),
                    HasSubstr("2 errors;")));
  // The misspelt key may be the one on which the check depends.
  for (const char* strategy :
       {"nmae: ps_asp", "name: ps_aspp", "name: inhad, pull_timeot: 1",
        "name: ps_asp, placment: dedicated", "name: ps_asp, placement: dedicatd"}) {
    EXPECT_THAT(errors(strategy, "worker: 0"), HasSubstr("1 error;")) << strategy;
  }
}

TEST(OneErrorInARun, ABatchIsCheckedBesideAnErrorThatLeavesTheSizeAlone) {
  const auto errors = [](const std::string& data) {
    return WhatOf<ConfigError>([&] {
      auto document = config::Document::FromText(
          "model: lenet5\nbatch: 32\ndata: {name: digits, " + data + "}\n", "run.yaml");
      ReadRunConfig(document);
    });
  };
  for (const char* data : {"train_samples: 10, tset_samples: 10",
                           "train_samples: 10, test_samples: -1", "train_samples: 10, sed: 3"}) {
    EXPECT_THAT(errors(data), AllOf(HasSubstr("batch 32 is more than the 10 training samples"),
                                    HasSubstr("run.yaml:3:"), HasSubstr("2 errors;")))
        << data;
  }
  for (const char* data : {"train_samples: 10, limt: 5", "train_samples: ten", "tain_samples: 10",
                           "limit: 5, train_sampels: 100", "train_samples: 10, validatoin: 0.1"}) {
    EXPECT_THAT(errors(data), AllOf(HasSubstr("run.yaml:3:"), HasSubstr("1 error;"))) << data;
  }
}

// A table that cannot be read because of a misspelt key.
class OneErrorOfATable : public ::testing::Test {
 protected:
  OneErrorOfATable() {
    std::string pattern = (std::filesystem::temp_directory_path() / "dtrain-table-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    std::ofstream(folder_ / "t.csv") << "y,a,word\n1,2,x\n3,4,y\n5,6,x\n7,8,x\n";
  }
  ~OneErrorOfATable() override { std::filesystem::remove_all(folder_); }

  template <class E>
  std::string Of(const std::string& keys, const std::string& more = "") const {
    return WhatOf<E>([&] {
      auto document =
          config::Document::FromText("model: {name: lenet5}\nbatch: 1\ndata: {name: csv, train: " +
                                         (folder_ / "t.csv").string() + ", " + keys + "}\n" + more,
                                     "run.yaml");
      ReadRunConfig(document);
    });
  }

  std::filesystem::path folder_;
};

TEST_F(OneErrorOfATable, AKeyIsReportedBeforeWhatItsDefaultReads) {
  EXPECT_THAT(Of<ConfigError>("labell: word, task: regression"),
              AllOf(HasSubstr("unknown key 'labell'"), HasSubstr("1 error;")));
  EXPECT_THAT(Of<ConfigError>("label: zzz", "timelin: true\n"),
              AllOf(HasSubstr("'timelin'"), HasSubstr("1 error;")));
  EXPECT_THAT(Of<DataError>("label: zzz"), HasSubstr("no column is called 'zzz'"));
}

TEST_F(OneErrorOfATable, AColumnMayBeANumber) {
  EXPECT_THAT(Of<DataError>("label: 4"), HasSubstr("no column is called '4'"));
  EXPECT_THAT(Of<DataError>("label: 1"), HasSubstr("word")) << "which is a text, and no label";
}

}  // namespace
}  // namespace dtrain
