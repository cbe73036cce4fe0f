// Tokenizer splits a sentence into words and punctuation, in lower case.  Its rules must never change, since a trained
// model depends on them:
//
//   1. accents are composed, letters made lower case, quotes and dashes replaced by plain ones (Moses,
//      normalize-punctuation.perl);
//   2. the text is split at white space; punctuation and symbols are words of their own, but
//      - a hyphen, or a comma or dot between digits, stays inside its word;
//      - English: an apostrophe between letters begins a word ("dog's" -> "dog 's");
//      - consecutive dots are one word; a dot after a word is a separate word only at the end of the
//        sentence, or if no small letter follows (Moses, tokenizer.perl, whose input was lower case);
//   3. with `escape`, & < > ' " | [ ] are escaped as Moses does, "&apos;s", and as published
//      tokenised files have them.  Escapes in the input are always decoded, so tokenising twice
//      changes nothing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dtrain {

enum class Language { kGerman, kEnglish };
constexpr const char* NameOf(Language language) {
  return language == Language::kGerman ? "de" : "en";
}

class Tokenizer {
 public:
  Tokenizer(Language language, bool escape) : language_(language), escape_(escape) {}

  // `line` must be valid UTF-8.
  std::vector<std::string> Split(std::string_view line) const;

 private:
  Language language_;
  bool escape_;
};

// Joins words to text for users: with spaces, escapes undone, no space before closing punctuation.
std::string JoinWords(const std::vector<std::string>& words);

}  // namespace dtrain
