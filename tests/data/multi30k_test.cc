// Tests the data set multi30k on small files; tests/real_data has the real ones.
#include <gmock/gmock.h>

#include "framework/core/error.h"
#include "framework/data/files/catalog.h"
#include "framework/data/text/parallel_text.h"
#include "tests/data/temp_folder.h"
#include "tests/support/data_source.h"

namespace dtrain {
namespace {
namespace fs = std::filesystem;

using testing::HasSubstr;

void WriteSplits(const TempFolder& folder, const std::string& pattern_de,
                 const std::string& pattern_en) {
  for (const std::string split : {"train", "val", "test_2016_flickr"}) {
    folder.Write(pattern_de.substr(0, 4) + split + pattern_de.substr(4), "Ein Hund.\nein Hund ,\n");
    folder.Write(pattern_en.substr(0, 4) + split + pattern_en.substr(4), "A dog .\na dog 's\n");
  }
}

TEST(Multi30k, TokenizedIsTakenWhereItIs) {
  const TempFolder folder;
  WriteSplits(folder, "raw/.de", "raw/.en");
  const auto words = [&](const std::string& keys) {
    const auto set = SourceOf("multi30k", keys)->Load(folder.path(), 1);
    return set->sentence_pairs()->info().source.ToText() +
           set->sentence_pairs()->info().target.ToText();
  };
  const std::string marks = "<unk>\n<pad>\n<sos>\n<eos>\n";
  EXPECT_EQ(words(""), marks + "ein\nhund\n" + marks + "a\ndog\n");
  EXPECT_THAT(MessageOf<DataError>([&] { words("text: tokenized"); }),
              HasSubstr("has no tokenised text 'train' in German | take data.text: raw"));
  WriteSplits(folder, "tok/.lc.norm.tok.de", "tok/.lc.norm.tok.en");
  EXPECT_EQ(words(""), marks + marks + "dog\n");
  EXPECT_EQ(words("text: raw"), marks + "ein\nhund\n" + marks + "a\ndog\n");
  EXPECT_EQ(words("text: raw, direction: en-de"), marks + "a\ndog\n" + marks + "ein\nhund\n");
}

TEST(Multi30k, ThreeSplits) {
  const TempFolder folder;
  WriteSplits(folder, "raw/.de", "raw/.en");
  const auto set = SourceOf("multi30k", "")->Load(folder.path(), 1);
  EXPECT_TRUE(set->has_validation());
  for (const Split split : {Split::kTrain, Split::kValidation, Split::kTest}) {
    EXPECT_EQ(set->size(split), 2);
  }
  EXPECT_NE(set->ManifestHash(),
            SourceOf("multi30k", "direction: en-de")->Load(folder.path(), 1)->ManifestHash());
}

}  // namespace
}  // namespace dtrain
