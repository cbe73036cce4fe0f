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

using testing::AllOf;
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

// WMT16's release has train, val and test2016, without folders.
TEST(Multi30k, TakesTheNamesOfWmt16) {
  for (const std::string test : {"test2016", "test_2016", "test2016_flickr", "test"}) {
    for (const std::string middle : {".", ".lc.norm.tok."}) {
      for (const bool packed : {false, true}) {
        const TempFolder folder;
        for (const std::string& split : {std::string("train"), std::string("val"), test}) {
          for (const auto& [language, text] :
               {std::pair("de", "Ein Hund.\nein Hund ,\n"), {"en", "A dog .\na dog 's\n"}}) {
            if (packed) {
              folder.WriteGzip(split + middle + language + ".gz", text);
            } else {
              folder.Write(split + middle + language, text);
            }
          }
        }
        const auto set = SourceOf("multi30k", "")->Load(folder.path(), 1);
        EXPECT_EQ(set->size(Split::kTest), 2) << test << middle;
        EXPECT_EQ(set->sentence_pairs()->info().escaped, middle != ".");
      }
    }
  }
}

TEST(Multi30k, BothLanguagesOfASplitHaveOneName) {
  const TempFolder folder;
  WriteSplits(folder, "raw/.de", "raw/.en");
  folder.Write("test2016.de", "Eine Katze.\n");
  const auto size = [&] {
    return SourceOf("multi30k", "")->Load(folder.path(), 1)->size(Split::kTest);
  };
  EXPECT_EQ(size(), 2);
  folder.Write("test2016.en", "A cat.\n");
  EXPECT_EQ(size(), 2) << "the publisher's name goes first";
  fs::remove(folder / "raw/test_2016_flickr.en");
  EXPECT_EQ(size(), 1);
  fs::remove(folder / "test2016.en");
  EXPECT_THAT(
      MessageOf<DataError>(size),
      AllOf(HasSubstr("has no raw text 'test_2016_flickr' in English"), HasSubstr("test2016.de")));
}

}  // namespace
}  // namespace dtrain
