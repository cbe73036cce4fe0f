// Vocabulary maps words to numbers.  Four numbers are fixed:
//
//   0 <unk>  an unknown word             2 <sos>  begin of a sentence
//   1 <pad>  padding after a sentence    3 <eos>  end of a sentence
//
// The words of the training text follow by falling frequency, equally frequent ones sorted by spelling.
//
// A word of a text that is spelled like a mark, "<eos>", is an unknown word.
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
  static bool IsMark(std::string_view word);  // spelled like one of the four marks
  Vocabulary();                               // only the four marks
  // Makes the vocabulary of words that occur at least `min_count` times.
  static Vocabulary Of(const std::vector<std::vector<std::string>>& sentences, int64_t min_count);
  // Parses ToText's result.  Throws DataError, naming `source`, if the text is wrong.
  static Vocabulary FromText(std::string_view text, const std::string& source);

  int64_t size() const { return static_cast<int64_t>(words_.size()); }
  // Returns kUnknown for an unknown word and for the spelling of a mark.
  int32_t NumberOf(const std::string& word) const;
  const std::string& WordOf(int32_t number) const { return words_.at(static_cast<size_t>(number)); }
  std::vector<int32_t> NumbersOf(const std::vector<std::string>& words) const;
  // Returns the words without marks, up to the first <eos>.
  std::vector<std::string> WordsOf(const std::vector<int32_t>& numbers) const;

  std::string ToText() const;  // one word per line, in order
  friend bool operator==(const Vocabulary& a, const Vocabulary& b) { return a.words_ == b.words_; }

 private:
  void Add(const std::string& word);

  std::vector<std::string> words_;
  std::unordered_map<std::string, int32_t> numbers_;
};

}  // namespace dtrain
