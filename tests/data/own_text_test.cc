// Tests the data set parallel_text: the user's own sentences and their translations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/core/error.h"
#include "framework/data/text/sentence_pairs.h"
#include "tests/data/table_files.h"
#include "tests/data/temp_folder.h"
#include "tests/support/data_source.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class OwnText : public testing::Test {
 protected:
  OwnText() {
    folder_.Write("a.de", "Ein Hund läuft.\nEin Hund schläft.\nEine Katze.\n");
    folder_.Write("a.en", "A dog runs.\nA dog sleeps.\nA cat.\n");
    folder_.Write("t.de", "Ein Hund.\n");
    folder_.Write("t.en", "A dog.\n");
  }
  std::string Keys(const std::string& more = "") const {
    const auto path = [&](const char* name) { return (folder_ / name).string(); };
    return fmt::format("train_source: {}, train_target: {}, test_source: {}, test_target: {}{}",
                       path("a.de"), path("a.en"), path("t.de"), path("t.en"), more);
  }
  TempFolder folder_;
};

TEST_F(OwnText, VocabulariesAreOfTheTrainingText) {
  const auto set = SourceOf("parallel_text", Keys(", min_count: 2"))->Load("", 1);
  const SentencePairs* pairs = set->sentence_pairs();
  ASSERT_NE(pairs, nullptr);
  EXPECT_EQ(set->size(Split::kTrain), 3);
  EXPECT_EQ(set->size(Split::kTest), 1);
  EXPECT_FALSE(set->has_validation());
  EXPECT_EQ(pairs->info().source.size(), 4 + 3) << "ein, hund and the dot";
  EXPECT_EQ(pairs->info().target.size(), 4 + 3) << "a, dog and the dot";
  EXPECT_EQ(pairs->Reference(Split::kTest, 0), (std::vector<std::string>{"a", "dog", "."}));
  EXPECT_GT(SourceOf("parallel_text", Keys(", min_count: 1"))->classes(), set->classes());
}

TEST_F(OwnText, ValidationIsASplitOfItsOwnOrAShareOfTheTraining) {
  const std::string files = fmt::format(", validation_source: {}, validation_target: {}",
                                        (folder_ / "t.de").string(), (folder_ / "t.en").string());
  EXPECT_EQ(SourceOf("parallel_text", Keys(files))->Load("", 1)->size(Split::kValidation), 1);
  const auto shared = HoldOut(SourceOf("parallel_text", Keys()), 0.4)->Load("", 1);
  EXPECT_EQ(shared->size(Split::kValidation), 1);
  EXPECT_EQ(shared->size(Split::kTrain), 2);
  EXPECT_EQ(shared->size(Split::kTest), 1);
}

TEST_F(OwnText, ErrorsAreNamed) {
  folder_.Write("a.en", "A dog runs.\nA dog sleeps.\n");
  EXPECT_THAT(WhatOf<DataError>([&] { SourceOf("parallel_text", Keys()); }),
              AllOf(HasSubstr("a.de has 3 lines"), HasSubstr("a.en has 2 lines")));
  EXPECT_THAT(
      WhatOf<ConfigError>([&] { SourceOf("parallel_text", Keys(", validation_source: x.de")); }),
      AllOf(HasSubstr("there is no file x.de"), HasSubstr("a source and a target"),
            HasSubstr("the working directory, " + std::filesystem::current_path().string())));
  EXPECT_THAT(WhatOf<ConfigError>([&] { SourceOf("parallel_text", "train_source: x.de"); }),
              AllOf(HasSubstr("train_target"), HasSubstr("test_source")));
}

}  // namespace
}  // namespace dtrain
