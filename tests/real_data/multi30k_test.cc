// Tests the real Multi30k if DTRAIN_DATA has it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "framework/data/files/catalog.h"
#include "framework/data/text/parallel_text.h"
#include "tests/support/data_source.h"

namespace dtrain {
namespace {
namespace fs = std::filesystem;

class RealMulti30k : public testing::Test {
 protected:
  void SetUp() override {
    const fs::path root = RealDataRoot("multi30k");
    if (root.empty()) GTEST_SKIP() << NoRealData("multi30k");
    folder_ = root / "multi30k";
  }
  fs::path folder_;
};

TEST_F(RealMulti30k, SizesAreAsPublished) {
  for (const std::string keys : {"text: tokenized", "text: raw", "direction: en-de"}) {
    const auto source = SourceOf("multi30k", keys);
    const auto set = source->Load(folder_, 1);
    for (const Split split : {Split::kTrain, Split::kValidation, Split::kTest}) {
      EXPECT_EQ(set->size(split), source->size(split)) << keys;
    }
    for (size_t field = 0; field < 3; ++field) {
      EXPECT_EQ(set->fields()[field].classes, source->fields()[field].classes) << keys;
    }
  }
}

// Our tokeniser turns the raw text into the publisher's tokenised files, except for Moses's list of
// abbreviations and lines that were corrected by hand.
TEST_F(RealMulti30k, RawTextIsTokenisedNearlyAsPublished) {
  for (const auto& [language, name] :
       {std::pair{Language::kGerman, "de"}, std::pair{Language::kEnglish, "en"}}) {
    const auto raw = ReadLines(folder_ / "raw" / (std::string("train.") + name + ".gz"));
    const auto published =
        ReadLines(folder_ / "tok" / (std::string("train.lc.norm.tok.") + name + ".gz"));
    ASSERT_EQ(raw.size(), published.size());
    const Tokenizer tokenizer(language, true);
    size_t same = 0, again = 0;
    for (size_t i = 0; i < raw.size(); ++i) {
      std::string line;
      for (const std::string& word : tokenizer.Split(raw[i]))
        line += (line.empty() ? "" : " ") + word;
      std::string twice;
      for (const std::string& word : tokenizer.Split(line)) {
        twice += (twice.empty() ? "" : " ") + word;
      }
      same += line == published[i];
      again += line == twice;
      if (line != published[i] && std::getenv("DTRAIN_SHOW_DIFFERENCES") != nullptr) {
        std::cout << line << "\n" << published[i] << "\n\n";
      }
    }
    EXPECT_GT(static_cast<double>(same), 0.98 * static_cast<double>(raw.size())) << name;
    EXPECT_EQ(again, raw.size()) << name;
  }
}

TEST_F(RealMulti30k, FilesAreAsPublished) {
  EXPECT_TRUE(VerifyDataset("multi30k", folder_.parent_path().string()).ok());
}

}  // namespace
}  // namespace dtrain
