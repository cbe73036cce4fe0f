#include "framework/data/text/parallel_text.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/core/text.h"
#include "framework/core/utf8.h"
#include "framework/data/text/characters.h"

namespace dtrain {
namespace {

std::vector<std::string> WordsBetweenSpaces(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  for (const char32_t code : DecodeUtf8(line)) {
    if (!IsWhiteSpace(code)) {
      AppendUtf8(code, word);
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

std::vector<std::string> WordsOf(const TextFile& file, const std::string& line) {
  if (file.tokenised) return WordsBetweenSpaces(line);
  return Tokenizer(file.language, false).Split(line);
}

// Counts lines with a property, for one warning.
struct Noted {
  int64_t count = 0;
  size_t first_line = 0;
  void Add(size_t line) {
    if (count++ == 0) first_line = line;
  }
};

void Say(const Noted& noted, const TextFile& source, const std::string& what) {
  if (noted.count == 0) return;
  log::Warning("{}: {} {} (the first is line {})", source.path.string(),
               Counted(noted.count, "pair"), what, noted.first_line);
}

bool HasMark(const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(), Vocabulary::IsMark);
}

// Cuts longer sentences; the whole target is kept separately.
void Cut(size_t longest, std::vector<std::string>& source, std::vector<std::string>& target,
         ParallelText& text) {
  if (source.size() > longest) source.resize(longest);
  if (target.size() <= longest) return;
  text.whole_target[text.target.size()] = target;
  target.resize(longest);
}

}  // namespace

ParallelText ReadParallelText(const TextFile& source, const TextFile& target, int64_t max_length,
                              LongSentences long_sentences) {
  const std::vector<std::string> from = ReadLines(source.path), to = ReadLines(target.path);
  if (from.size() != to.size()) {
    throw DataError(
        fmt::format("{} has {}, {} has {}", source.path.string(),
                    Counted(static_cast<int64_t>(from.size()), "line"), target.path.string(),
                    Counted(static_cast<int64_t>(to.size()), "line")),
        "line n of the one must be the translation of line n of the other");
  }
  const size_t longest = static_cast<size_t>(max_length);
  ParallelText text;
  Noted empty, too_long, marks;
  for (size_t i = 0; i < from.size(); ++i) {
    std::vector<std::string> source_words = WordsOf(source, from[i]);
    std::vector<std::string> target_words = WordsOf(target, to[i]);
    if (source_words.empty() || target_words.empty()) {
      empty.Add(i + 1);
      continue;
    }
    if (source_words.size() > longest || target_words.size() > longest) {
      too_long.Add(i + 1);
      if (long_sentences == LongSentences::kSkip) continue;
      Cut(longest, source_words, target_words, text);
    }
    if (HasMark(source_words) || HasMark(target_words)) marks.Add(i + 1);
    text.source.push_back(std::move(source_words));
    text.target.push_back(std::move(target_words));
  }
  Say(empty, source, "with an empty side left out");
  Say(too_long, source,
      fmt::format("longer than {} {}", Counted(max_length, "word"),
                  long_sentences == LongSentences::kSkip ? "left out" : "cut"));
  Say(marks, source, "with a word like '<pad>', read as an unknown word");
  if (!text.source.empty()) return text;
  throw DataError(fmt::format("{} and {} have no pair of sentences", source.path.string(),
                              target.path.string()));
}

}  // namespace dtrain
