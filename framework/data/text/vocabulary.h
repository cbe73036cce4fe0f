// Vocabulary: words and their numbers.  Four numbers are fixed:
//
//   0 <unk>  a word that is not known         2 <sos>  before a sentence
//   1 <pad>  behind a sentence                3 <eos>  at its end
//
// then come the words of the training text by falling frequency, equally frequent ones by spelling.
//
// Who writes "<eos>" in a text means no end of a sentence: such a word is an unknown one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace dtrain {

namespace token {
inline constexpr int32_t kUnknown = 0, kPad = 1, kStart = 2, kEnd = 3;
inline constexpr int32_t kFirstWord = 4;
}  // namespace token

class Vocabulary {
 public:
  static bool IsMark(std::string_view word);  // spelled like one of the four
  Vocabulary();                               // the four alone
  // Words that occur at least `min_count` times.
  static Vocabulary Of(const std::vector<std::vector<std::string>>& sentences, int64_t min_count);
  // The inverse of ToText.  Throws DataError, naming `source`, where it is not.
  static Vocabulary FromText(std::string_view text, const std::string& source);

  int64_t size() const { return static_cast<int64_t>(words_.size()); }
  // kUnknown where it is not known, and for the spelling of a mark.
  int32_t NumberOf(const std::string& word) const;
  const std::string& WordOf(int32_t number) const { return words_.at(static_cast<size_t>(number)); }
  std::vector<int32_t> NumbersOf(const std::vector<std::string>& words) const;
  // Without the marks; up to the first <eos>.
  std::vector<std::string> WordsOf(const std::vector<int32_t>& numbers) const;

  std::string ToText() const;  // a word a line, in order
  friend bool operator==(const Vocabulary& a, const Vocabulary& b) { return a.words_ == b.words_; }

 private:
  void Add(const std::string& word);

  std::vector<std::string> words_;
  std::unordered_map<std::string, int32_t> numbers_;
};

}  // namespace dtrain
