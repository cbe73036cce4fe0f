// Reads the vocabularies that a checkpoint and an export store as text, and a line to translate.
#include "framework/core/utf8.h"
#include "framework/data/text/sentence_pairs.h"
#include "tests/fuzz/fuzz_target.h"

namespace dtrain::fuzz {
namespace {

void CheckVocabulary(const Vocabulary& vocabulary) {
  Require(vocabulary.size() >= token::kFirstWord, "a mark is missing");
  for (int32_t number = token::kFirstWord; number < vocabulary.size(); ++number) {
    Require(vocabulary.NumberOf(vocabulary.WordOf(number)) == number, "a word has two numbers");
  }
}

bool Info(std::string_view input) {
  const std::string text(input);
  return Accepts(ExitCode::kData, [&] {
    const TextInfo info = TextInfoFromText(text, "checkpoint");
    Require(info.ToText() == text, "another text was read again");
    CheckVocabulary(info.source);
    CheckVocabulary(info.target);
    if (FindInvalidUtf8(input)) return;
    const auto words = Tokenizer(info.source_language, info.escaped).Split(input);
    info.source.WordsOf(info.source.NumbersOf(words));
    JoinWords(words);
  });
}

DTRAIN_FUZZ_TARGET("vocabulary", Info);

}  // namespace
}  // namespace dtrain::fuzz
