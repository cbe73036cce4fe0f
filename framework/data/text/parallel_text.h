// Parallel text: two files of which line n of one translates line n of the other.
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

// All lines of a text file, plain or packed (data/files/archive.h), without their ends (\n or
// \r\n); the last one may lack it.  Throws DataError with file and line for text that is no UTF-8,
// holds a zero byte or a line of more than a megabyte, and as MemberReader does.
std::vector<std::string> ReadLines(const std::filesystem::path& path);  // text_file.cc

// The same, one after the other.
class LineReader {
 public:
  explicit LineReader(const std::filesystem::path& path);
  bool Next(std::string& line);  // false at the end

 private:
  std::filesystem::path path_;
  MemberReader in_;
  std::string block_;
  std::string_view rest_;  // of the block, still to be read
  size_t lines_ = 0;
};

// How the words of a file are told.
struct TextFile {
  std::filesystem::path path;
  Language language;
  bool tokenised = false;  // the file has words between spaces; else sentences, for a Tokenizer
};

enum class LongSentences { kSkip, kCut };

// Reads pairs of lines.  A pair with an empty side is left out; a sentence of more than
// `max_length` words makes its pair be left out or is cut.  These are counted and said in the log,
// with the first line, and so are words that are spelled like a mark of the vocabulary.  Throws
// DataError as ReadLines does, and when the files have different numbers of lines or no pair is
// left.
ParallelText ReadParallelText(const TextFile& source, const TextFile& target, int64_t max_length,
                              LongSentences long_sentences);

}  // namespace dtrain
