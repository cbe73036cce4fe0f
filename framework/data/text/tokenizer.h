// Tokenizer: a sentence as words and punctuation, in lower case.  Fixed rules, so that a model and
// the text it is given agree for ever:
//
//   1. accents are composed, letters lower case, quotes and dashes their plain forms (Moses,
//      normalize-punctuation.perl);
//   2. split at white space; punctuation and symbols are words of their own, but
//      - a hyphen, or a comma or dot between digits, stays inside its word;
//      - English: an apostrophe between letters begins a word ("dog's" -> "dog 's");
//      - dots that follow each other are one word; a dot behind a word is a word at the end of the
//        sentence only, or where no small letter follows (Moses, tokenizer.perl, whose text was
//        lower case before);
//   3. with `escape`, & < > ' " | [ ] are written as Moses does: "&apos;s".  Published tokenised
//      files are.  Such forms are understood in the input of either kind, so tokenising twice
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

  // `line`: valid UTF-8.
  std::vector<std::string> Split(std::string_view line) const;

 private:
  Language language_;
  bool escape_;
};

// The other way round, for people: words joined by spaces, escapes undone, no space before
// punctuation that ends something.
std::string JoinWords(const std::vector<std::string>& words);

}  // namespace dtrain
