// Parallel text consists of two files; line n of one translates line n of the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "framework/data/files/archive.h"
#include "framework/data/text/sentence_pairs.h"

namespace dtrain {

// Returns all lines of a text file, plain or compressed (data/files/archive.h), without their ends (\n or \r\n); the
// last one may lack it.  Throws DataError with file and line for text that is no UTF-8, holds a zero byte or a line of
// more than a megabyte, and as MemberReader does.
std::vector<std::string> ReadLines(const std::filesystem::path& path);  // text_file.cc

// Reads the same lines one by one.
class LineReader {
 public:
  explicit LineReader(const std::filesystem::path& path);
  bool Next(std::string& line);  // false at the end

 private:
  std::filesystem::path path_;
  MemberReader in_;
  std::string block_;
  std::string_view rest_;  // unread rest of the block
  size_t lines_ = 0;
};

// Describes a text file and the way to split it into words.
struct TextFile {
  std::filesystem::path path;
  Language language;
  // True: words are separated by spaces; false: sentences for a Tokenizer.
  bool tokenised = false;
};

enum class LongSentences { kSkip, kCut };

// Reads pairs of lines.  A pair with an empty side is left out; a pair with a sentence of more than `max_length` words
// is left out or its sentence is cut.  The log reports the number of these pairs and the first line, and also words
// that are spelled like a mark of the vocabulary.  Throws DataError as ReadLines does, and if the files have different
// numbers of lines or no pair is left.
ParallelText ReadParallelText(const TextFile& source, const TextFile& target, int64_t max_length,
                              LongSentences long_sentences);

}  // namespace dtrain
