// The data set `parallel_text`: the user's own sentences and their translations, in two text files per split
// (framework/data/text/parallel_text.h).
#include "framework/data/text/parallel_text.h"

#include <array>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/core/file.h"

namespace dtrain {
namespace {
namespace fs = std::filesystem;

// Names the source and target file of a split.
struct Sides {
  std::string source, target;
  bool given() const { return !source.empty(); }
};

class OwnText : public DatasetSource {
 public:
  void Configure(config::Reader& reader) override {
    ConfigureKeys(reader);
    if (CheckFiles(reader)) Read();
  }
  void ConfigureKeys(config::Reader& reader) override {
    const auto sides = [&](const std::string& split, const char* what, bool required) {
      const auto side = [&](const std::string& name, const char* of) {
        auto field = reader.String(split + "_" + name, "")
                         .Help(fmt::format("text file of the {}, {}: a sentence a line", what, of));
        if (required) field.Required();
        return static_cast<std::string>(field);
      };
      return Sides{side("source", "to be translated"), side("target", "translated")};
    };
    sides_ = {sides("train", "training sentences", true),
              sides("validation", "validation sentences (\"\": none)", false),
              sides("test", "test sentences", true)};
    const auto language = [&](const char* key, const char* usual) {
      return std::string(reader.String(key, usual)
                             .OneOf({"de", "en"})
                             .Help("language whose rules the tokeniser follows: en splits at an "
                                   "apostrophe")) == "de"
                 ? Language::kGerman
                 : Language::kEnglish;
    };
    source_ = language("source_language", "de");
    target_ = language("target_language", "en");
    tokenised_ = reader.Bool("tokenized", false)
                     .Help(
                         "true: the files have words separated by spaces; false: sentences, which "
                         "dtrain tokenises");
    min_count_ =
        reader.Int("min_count", 2)
            .Min(1)
            .Help("a vocabulary has the words that occur at least this often in the training text");
    max_length_ = reader.Int("max_length", 100)
                      .Min(1)
                      .Max(10000)
                      .Help(
                          "maximum sentence length in words; longer sentences are skipped in "
                          "training and cut elsewhere");
  }

  std::vector<FieldSpec> fields() const override {
    if (set_) return set_->fields();
    return SentenceFields(SentencePairs::kLengthStep, SentencePairs::kLengthStep, token::kFirstWord,
                          token::kFirstWord);
  }
  int64_t size(Split split) const override { return set_ ? set_->size(split) : 0; }
  int64_t classes() const override { return set_ ? set_->classes() : 0; }
  bool has_validation() const override { return sides_[1].given(); }
  bool is_own() const override { return true; }

  std::unique_ptr<Dataset> Load(const fs::path& folder, uint64_t seed) const override {
    auto set = std::make_unique<SentencePairs>(*set_);
    set->Note({.files = fmt::format("{}, {}", sides_[0].source, sides_[0].target),
               .read_as = fmt::format("{}, vocabularies of {} and {} words",
                                      tokenised_ ? "words" : "sentences, tokenised here",
                                      set->info().source.size(), set->info().target.size())});
    return set;
  }

 private:
  bool CheckFiles(config::Reader& reader) const {
    bool all = true;
    constexpr const char* kNames[] = {"train", "validation", "test"};
    for (size_t s = 0; s < sides_.size(); ++s) {
      const auto check = [&](const char* side, const std::string& path, const std::string& other) {
        std::error_code ignored;
        if (path.empty() && other.empty()) {
          all = all && s == 1;
          return;
        }
        if (!path.empty() && fs::is_regular_file(path, ignored)) return;
        all = false;
        if (path.empty() && s != 1) return;  // already reported as missing
        reader.AddError(fmt::format("{}_{}", kNames[s], side),
                        path.empty() ? "a split needs a source and a target"
                                     : WhyNoFile(path, fmt::format("there is no file {}", path)),
                        path.empty() ? "" : WhereItBegins(path));
      };
      check("source", sides_[s].source, sides_[s].target);
      check("target", sides_[s].target, sides_[s].source);
    }
    return all;
  }

  // Reads all texts, since the lengths of the sentences and the size of the vocabulary follow from them only.
  void Read() {
    std::array<ParallelText, 3> splits;
    for (size_t s = 0; s < splits.size(); ++s) {
      if (!sides_[s].given()) continue;
      splits[s] = ReadParallelText({sides_[s].source, source_, tokenised_},
                                   {sides_[s].target, target_, tokenised_}, max_length_,
                                   s == 0 ? LongSentences::kSkip : LongSentences::kCut);
    }
    TextInfo info{source_, target_, tokenised_, Vocabulary::Of(splits[0].source, min_count_),
                  Vocabulary::Of(splits[0].target, min_count_)};
    set_ = std::make_shared<const SentencePairs>(std::move(info), splits);
  }

  std::array<Sides, 3> sides_;  // in the order of Split
  Language source_ = Language::kGerman, target_ = Language::kEnglish;
  bool tokenised_ = false;
  int64_t min_count_ = 2;
  int64_t max_length_ = 100;
  std::shared_ptr<const SentencePairs> set_;
};

DTRAIN_DATASET("parallel_text", OwnText,
               "your own sentences and their translations: two text files a split");

}  // namespace
}  // namespace dtrain
