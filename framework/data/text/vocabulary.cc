#include "framework/data/text/vocabulary.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "framework/core/error.h"

namespace dtrain {
namespace {
constexpr const char* kMarks[] = {"<unk>", "<pad>", "<sos>", "<eos>"};
}

Vocabulary::Vocabulary() {
  for (const char* mark : kMarks) Add(mark);
}

bool Vocabulary::IsMark(std::string_view word) {
  return std::find(std::begin(kMarks), std::end(kMarks), word) != std::end(kMarks);
}

void Vocabulary::Add(const std::string& word) {
  if (numbers_.emplace(word, static_cast<int32_t>(words_.size())).second) words_.push_back(word);
}

Vocabulary Vocabulary::Of(const std::vector<std::vector<std::string>>& sentences,
                          int64_t min_count) {
  std::unordered_map<std::string_view, int64_t> counts;
  for (const auto& sentence : sentences) {
    for (const std::string& word : sentence) ++counts[word];
  }
  std::vector<std::pair<int64_t, std::string_view>> frequent;  // with negative counts
  for (const auto& [word, count] : counts) {
    if (count >= min_count && !IsMark(word)) frequent.emplace_back(-count, word);
  }
  std::sort(frequent.begin(), frequent.end());
  Vocabulary vocabulary;
  for (const auto& [count, word] : frequent) vocabulary.Add(std::string(word));
  return vocabulary;
}

Vocabulary Vocabulary::FromText(std::string_view text, const std::string& source) {
  Vocabulary vocabulary;
  size_t line = 0;
  for (size_t begin = 0; begin < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string word(text.substr(begin, end - begin));
    begin = end + 1;
    const bool mark = line < std::size(kMarks);
    if (word.empty() || (mark ? word != kMarks[line] : vocabulary.numbers_.contains(word))) {
      throw DataError(fmt::format("{}: line {} of the vocabulary is '{}'{}", source, line + 1, word,
                                  mark ? fmt::format(", it should be '{}'", kMarks[line])
                                       : ", which is empty or there already"));
    }
    vocabulary.Add(word);
  }
  return vocabulary;
}

int32_t Vocabulary::NumberOf(const std::string& word) const {
  const auto it = numbers_.find(word);
  return it == numbers_.end() || it->second < token::kFirstWord ? token::kUnknown : it->second;
}

std::vector<int32_t> Vocabulary::NumbersOf(const std::vector<std::string>& words) const {
  std::vector<int32_t> numbers;
  for (const std::string& word : words) numbers.push_back(NumberOf(word));
  return numbers;
}

std::vector<std::string> Vocabulary::WordsOf(const std::vector<int32_t>& numbers) const {
  std::vector<std::string> words;
  for (const int32_t number : numbers) {
    if (number == token::kEnd) break;
    if (number != token::kPad && number != token::kStart) words.push_back(WordOf(number));
  }
  return words;
}

std::string Vocabulary::ToText() const {
  std::string text;
  for (const std::string& word : words_) text += word + "\n";
  return text;
}

}  // namespace dtrain
