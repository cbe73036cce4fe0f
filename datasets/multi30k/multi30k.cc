// Multi30k, task 1 (Elliott, Frank, Sima'an, Specia, "Multi30K: multilingual English-German image
// descriptions", 2016): 29,000 + 1,014 + 1,000 (test_2016_flickr) descriptions of images, in German and English.
//
// The files are named as in the publisher's repository: raw/train.de.gz (sentences, which our tokeniser splits) and
// tok/train.lc.norm.tok.de (lower-case words, tokenised by Moses; gzipped or not).  A vocabulary has the words that
// occur at least twice in the training text.  WMT16's release has the same sentences, but names the test split
// otherwise.
#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/data/text/parallel_text.h"

namespace dtrain {
namespace {
namespace fs = std::filesystem;

constexpr int64_t kMinCount = 2;
constexpr int64_t kTypicalLength = 17;  // length in a batch: 13 words, 2 marks and some padding

struct PublishedFile {
  const char* name;
  int64_t bytes;
  const char* sha256;
  const char* content_sha256;
};

constexpr PublishedFile kRaw[] = {
    {"train.de.gz", 637044, "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
     "2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72"},
    {"train.en.gz", 568929, "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
     "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6"},
    {"val.de.gz", 24681, "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
     "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660"},
    {"val.en.gz", 21650, "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
     "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227"},
    {"test_2016_flickr.de.gz", 22890,
     "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
     "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16"},
    {"test_2016_flickr.en.gz", 21077,
     "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
     "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182"},
};

// The publisher stores these files unpacked; the hashes of the packed files are those of `gzip -n -9`.
constexpr PublishedFile kTokenised[] = {
    {"train.lc.norm.tok.de.gz", 609350,
     "7e3392f03c0fe978165d22fb5eaf0d0b9b1d9c413283b5193f02d4cb27e50797",
     "cb5a23529b65ec2061f1dc446192a9c37382b63cc75f81a0be59d34894b3a505"},
    {"train.lc.norm.tok.en.gz", 557961,
     "79d990dd71713faec0e3165cbd3b60acdf6fe11cab2e37a28f374c6bdbb297ec",
     "08925f8e0572bcd5a006702fc5fe20e2d77c6917d4eebd576fc20de6693c2119"},
    {"val.lc.norm.tok.de.gz", 23687,
     "006ad58fd6a2ad6502094160fe5273d93abf34a207967fdc69eafd7558b5ef39",
     "97232bd273eceb7207f689527386a97e4be2616b18ada47576bdaf96c8ae1f00"},
    {"val.lc.norm.tok.en.gz", 21317,
     "2c7e5e9cf54ba0dff0cc4b84836d5a583f80ecaaab90b37a123d1376306215cd",
     "46573ce391ae227f1c72f873392436a20ef18e0a6d518098cfbd70b77c8572ec"},
    {"test_2016_flickr.lc.norm.tok.de.gz", 21966,
     "2628844bbb7783afa0ba8a9927f174aafeee715871aa8deed3af2c4d0b71a658",
     "c6a33d39d48f9f510de147651316cd9d918e09ad0219df734a2f16b6baccacc4"},
    {"test_2016_flickr.lc.norm.tok.en.gz", 20726,
     "b95df925929cb222d0cf733f153bcbfba0f00180c85fd61dd5c4fb27f29ee394",
     "5b7f32627cf99eced828311b955dae9800bb52bc8b91cf8b6526829e605b29d2"},
};

// A split, by all the names that its files may have.
using SplitNames = std::vector<std::string>;
const SplitNames kTrainNames = {"train"}, kValidationNames = {"val"},
                 kTestNames = {"test_2016_flickr", "test2016", "test_2016", "test2016_flickr",
                               "test"};

class Multi30k : public DatasetSource {
 public:
  void Configure(config::Reader& reader) override {
    const std::string direction = reader.String("direction", "de-en")
                                      .OneOf({"de-en", "en-de"})
                                      .Help("source and target language");
    source_ = direction == "de-en" ? Language::kGerman : Language::kEnglish;
    target_ = direction == "de-en" ? Language::kEnglish : Language::kGerman;
    text_ = static_cast<std::string>(
        reader.String("text", "auto")
            .OneOf({"auto", "tokenized", "raw"})
            .Help(
                "tokenized: the published words (folder tok); raw: sentences (folder raw) and our "
                "own tokeniser; auto: tokenized if the folder tok has it, else raw"));
    max_length_ = reader.Int("max_length", 100)
                      .Min(1)
                      .Max(10000)
                      .Help(
                          "maximum sentence length in words; longer sentences are skipped in "
                          "training and cut elsewhere");
  }

  std::vector<FieldSpec> fields() const override {
    return SentenceFields(kTypicalLength, kTypicalLength, PublishedWords(source_),
                          PublishedWords(target_));
  }
  int64_t size(Split split) const override {
    if (split == Split::kTrain) return 29000;
    return split == Split::kValidation ? 1014 : 1000;
  }
  int64_t classes() const override { return PublishedWords(target_); }
  bool has_validation() const override { return true; }

  std::vector<RemoteFile> files() const override {
    std::vector<RemoteFile> files;
    for (const PublishedFile& file : kRaw) {
      files.push_back(
          {std::string("raw/") + file.name,
           {std::string("https://raw.githubusercontent.com/multi30k/dataset/master/data/"
                        "task1/raw/") +
            file.name},
           file.sha256,
           file.bytes,
           file.content_sha256});
    }
    for (const PublishedFile& file : kTokenised) {
      files.push_back(
          {std::string("tok/") + file.name, {}, file.sha256, file.bytes, file.content_sha256});
    }
    return files;
  }

  std::unique_ptr<Dataset> Load(const fs::path& folder, uint64_t seed) const override {
    const bool tokenised =
        text_ == "tokenized" || (text_ == "auto" && !Find(folder, "train", source_, true).empty());
    const auto read = [&](const SplitNames& names, LongSentences long_sentences) {
      const std::string split = NameIn(folder, names, tokenised);
      const TextFile source = FileOf(folder, split, source_, tokenised);
      const TextFile target = FileOf(folder, split, target_, tokenised);
      return ReadParallelText(source, target, max_length_, long_sentences);
    };
    const std::array<ParallelText, 3> splits = {read(kTrainNames, LongSentences::kSkip),
                                                read(kValidationNames, LongSentences::kCut),
                                                read(kTestNames, LongSentences::kCut)};
    TextInfo info{source_, target_, tokenised, Vocabulary::Of(splits[0].source, kMinCount),
                  Vocabulary::Of(splits[0].target, kMinCount)};
    return std::make_unique<SentencePairs>(std::move(info), splits);
  }

 private:
  int64_t PublishedWords(Language language) const {
    if (text_ == "raw") return language == Language::kGerman ? 7856 : 5921;
    return language == Language::kGerman ? 7859 : 5921;
  }

  // Returns the path of a text, or an empty path if there is none.
  static fs::path Find(const fs::path& folder, const std::string& split, Language language,
                       bool tokenised) {
    const std::string name = split + (tokenised ? ".lc.norm.tok." : ".") + NameOf(language);
    for (const fs::path& place : {folder / (tokenised ? "tok" : "raw"), folder}) {
      for (const char* ending : {".gz", ""}) {
        if (fs::exists(place / (name + ending))) return place / (name + ending);
      }
    }
    return {};
  }

  // Returns the first name by which the folder has both texts, or else the publisher's.
  std::string NameIn(const fs::path& folder, const SplitNames& names, bool tokenised) const {
    const auto has_both = [&](const std::string& name) {
      return !Find(folder, name, source_, tokenised).empty() &&
             !Find(folder, name, target_, tokenised).empty();
    };
    const auto found = std::ranges::find_if(names, has_both);
    return found == names.end() ? names[0] : *found;
  }

  static TextFile FileOf(const fs::path& folder, const std::string& split, Language language,
                         bool tokenised) {
    const fs::path path = Find(folder, split, language, tokenised);
    if (!path.empty()) return {path, language, tokenised};
    throw DataError(fmt::format("{} has no {} text '{}' in {}", folder.string(),
                                tokenised ? "tokenised" : "raw", split,
                                language == Language::kGerman ? "German" : "English"),
                    tokenised ? "take data.text: raw, or put the publisher's *.lc.norm.tok.* files "
                                "into the folder tok"
                              : "dtrain data fetch multi30k, or put train.de, val.de, test2016.de "
                                "and the same .en files there");
  }

  Language source_ = Language::kGerman;
  Language target_ = Language::kEnglish;
  std::string text_ = "auto";
  int64_t max_length_ = 100;
};

DTRAIN_DATASET("multi30k", Multi30k, "descriptions of images, German and English (translation)");

}  // namespace
}  // namespace dtrain
