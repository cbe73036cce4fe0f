// Reads parallel text, two files of lines, tokenised or not, as sentences and as a data set.
#include "framework/data/text/parallel_text.h"

#include <algorithm>

#include "tests/fuzz/fuzz_target.h"

namespace dtrain::fuzz {
namespace {

constexpr int64_t kLongest = 6;

void CheckText(const ParallelText& text) {
  Require(text.source.size() == text.target.size() && !text.source.empty(), "a side is missing");
  for (const auto* side : {&text.source, &text.target}) {
    for (const auto& words : *side) {
      Require(!words.empty() && static_cast<int64_t>(words.size()) <= kLongest,
              "a sentence has a wrong length");
      for (const std::string& word : words) Require(!word.empty(), "a word is empty");
    }
  }
  for (const auto& [line, words] : text.whole_target) {
    Require(line < text.target.size() && words.size() > text.target[line].size(),
            "what was cut is no longer than what is left");
  }
}

void CheckSet(const ParallelText& text) {
  TextInfo info;
  info.source = Vocabulary::Of(text.source, 1);
  info.target = Vocabulary::Of(text.target, 1);
  const std::string written = info.ToText();
  Require(ReadAgain([&] { return TextInfoFromText(written, "again").ToText(); }) == written,
          "another vocabulary was read");
  const SentencePairs pairs(info, {text, text, {}});
  const std::vector<int64_t> all = {0, pairs.size(Split::kTrain) - 1};
  Batch batch(pairs.fields(), 2);
  batch.Resize(2);
  pairs.Fill(Split::kTrain, all, 0, batch);
  Require(pairs.TermsOf(Split::kTrain, all) >= 2, "a sentence has no terms");
}

// The first byte chooses whether the text is tokenised already, and whether long sentences are cut.
bool Text(std::string_view input) {
  InputReader in(input);
  const uint8_t choice = in.Byte();
  const auto from = WriteScratch("from.txt", in.LongText()), to = WriteScratch("to.txt", in.Rest());
  const bool tokenised = (choice & 1) != 0;
  const auto longer = (choice & 2) != 0 ? LongSentences::kCut : LongSentences::kSkip;
  return Accepts(ExitCode::kData, [&] {
    const ParallelText text =
        ReadParallelText({from, Language::kGerman, tokenised}, {to, Language::kEnglish, tokenised},
                         kLongest, longer);
    CheckText(text);
    CheckSet(text);
  });
}

DTRAIN_FUZZ_TARGET("parallel_text", Text);

}  // namespace
}  // namespace dtrain::fuzz
