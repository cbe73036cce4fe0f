#include "framework/data/text/sentence_pairs.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "framework/core/check.h"
#include "framework/core/error.h"
#include "framework/core/sha256.h"

namespace dtrain {
namespace {

int64_t RoundUp(int64_t length) {
  constexpr int64_t kStep = SentencePairs::kLengthStep;
  return (length + kStep - 1) / kStep * kStep;
}

constexpr int64_t kSourceMarks = 2;  // <sos> and <eos>
constexpr int64_t kTargetMarks = 1;  // one of them

using Mark = std::optional<int32_t>;

// Writes [before] words [after] <pad>.. into a row.
void WriteRow(Mark before, std::span<const int32_t> words, Mark after, int64_t length,
              int32_t* row) {
  int32_t* const end = row + length;
  if (before) *row++ = *before;
  row = std::copy(words.begin(), words.end(), row);
  if (after) *row++ = *after;
  std::fill(row, end, token::kPad);
}

Language LanguageOf(const std::string& name, const std::string& origin) {
  for (const Language language : {Language::kGerman, Language::kEnglish}) {
    if (name == NameOf(language)) return language;
  }
  throw DataError(fmt::format("{}: '{}' is no language that is known here", origin, name));
}

// Removes the first line from `text` and returns it.
std::string TakeLine(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string line(text.substr(0, end));
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

}  // namespace

std::string TextInfo::ToText() const {
  return fmt::format("{}\n{}\n{}\n{}\n{}{}", NameOf(source_language), NameOf(target_language),
                     escaped ? "escaped" : "plain", source.size(), source.ToText(),
                     target.ToText());
}

std::string TextInfo::Hash() const { return Sha256::Of(ToText()); }

TextInfo TextInfoFromText(const std::string& text, const std::string& origin) {
  std::string_view rest = text;
  TextInfo info;
  info.source_language = LanguageOf(TakeLine(rest), origin);
  info.target_language = LanguageOf(TakeLine(rest), origin);
  info.escaped = TakeLine(rest) == "escaped";
  const std::string count = TakeLine(rest);
  std::string source;
  for (int64_t words = std::atoll(count.c_str()); words > 0 && !rest.empty(); --words) {
    source += TakeLine(rest) + "\n";
  }
  info.source = Vocabulary::FromText(source, origin);
  info.target = Vocabulary::FromText(rest, origin);
  if (info.ToText() != text) throw DataError(origin + ": the vocabularies are damaged");
  return info;
}

std::vector<FieldSpec> SentenceFields(int64_t source_length, int64_t target_length,
                                      int64_t source_words, int64_t target_words) {
  return {{"source", DType::kI32, Shape{source_length}, source_words},
          {"target", DType::kI32, Shape{target_length}, target_words},
          {"label", DType::kI32, Shape{target_length}, target_words}};
}

std::span<const int32_t> SentencePairs::Side::Sentence(int64_t index) const {
  return std::span(tokens).subspan(begins[index], LengthOf(index));
}

int64_t SentencePairs::Side::longest() const {
  int64_t longest = 0;
  for (size_t i = 0; i + 1 < begins.size(); ++i) {
    longest = std::max(longest, LengthOf(static_cast<int64_t>(i)));
  }
  return longest;
}

SentencePairs::Side SentencePairs::Numbered(const std::vector<std::vector<std::string>>& sentences,
                                            const Vocabulary& vocabulary) {
  Side side;
  side.begins.push_back(0);
  for (const auto& sentence : sentences) {
    for (const std::string& word : sentence) side.tokens.push_back(vocabulary.NumberOf(word));
    side.begins.push_back(static_cast<int64_t>(side.tokens.size()));
  }
  return side;
}

SentencePairs::SentencePairs(TextInfo info, const std::array<ParallelText, 3>& splits)
    : info_(std::move(info)) {
  for (size_t s = 0; s < splits.size(); ++s) {
    DT_CHECK(splits[s].source.size() == splits[s].target.size());
    pairs_[s].source = Numbered(splits[s].source, info_.source);
    pairs_[s].target = Numbered(splits[s].target, info_.target);
    pairs_[s].references = splits[s].target;
    for (const auto& [line, words] : splits[s].whole_target) pairs_[s].references[line] = words;
  }
}

int64_t SentencePairs::size(Split split) const {
  return static_cast<int64_t>(pairs(split).references.size());
}

std::vector<FieldSpec> SentencePairs::fields() const {
  int64_t source = 0, target = 0;
  for (const Pairs& split : pairs_) {
    source = std::max(source, split.source.longest());
    target = std::max(target, split.target.longest());
  }
  return SentenceFields(RoundUp(source + kSourceMarks), RoundUp(target + kTargetMarks),
                        info_.source.size(), info_.target.size());
}

int64_t SentencePairs::Terms(Split split, int64_t index) const {
  return pairs(split).target.LengthOf(index) + kTargetMarks;
}

// Sorts by the target's length first: the scores of all words, for every step of it, cost the most in a translation.
std::vector<SampleLength> SentencePairs::Lengths(Split split) const {
  std::vector<SampleLength> lengths;
  for (int64_t i = 0; i < size(split); ++i) {
    const int64_t source = pairs(split).source.LengthOf(i);
    lengths.push_back({RoundUp(Terms(split, i)), source});
  }
  return lengths;
}

void SentencePairs::SampleShapes(Split split, std::span<const int64_t> indices,
                                 std::span<Shape> shapes) const {
  int64_t source = 0, target = 0;
  for (const int64_t index : indices) {
    source = std::max(source, pairs(split).source.LengthOf(index));
    target = std::max(target, pairs(split).target.LengthOf(index));
  }
  shapes[0] = Shape{RoundUp(source + kSourceMarks)};
  shapes[1] = shapes[2] = Shape{RoundUp(target + kTargetMarks)};
}

void SentencePairs::Fill(Split split, std::span<const int64_t> indices, uint64_t epoch,
                         Batch& batch) const {
  DT_CHECK(static_cast<int64_t>(indices.size()) == batch.samples)
      << indices.size() << " indices for " << batch.samples << " rows";
  const int64_t source_length = batch.fields[0].shape[1], target_length = batch.fields[1].shape[1];
  for (size_t row = 0; row < indices.size(); ++row) {
    const int64_t index = indices[row];
    DT_CHECK(index >= 0 && index < size(split)) << "sample " << index << " of " << size(split);
    const auto source = pairs(split).source.Sentence(index);
    const auto target = pairs(split).target.Sentence(index);
    WriteRow(token::kStart, source, token::kEnd, source_length,
             batch.fields[0].i32() + row * source_length);
    WriteRow(token::kStart, target, {}, target_length, batch.fields[1].i32() + row * target_length);
    WriteRow({}, target, token::kEnd, target_length, batch.fields[2].i32() + row * target_length);
  }
}

DataHashes SentencePairs::Hashes() const {
  return HashSplits(info_.ToText(), kSplits, [this](Split split, Sha256& hash) {
    const auto add = [&hash](const auto& values) {
      hash.Update(fmt::format("{}\n", values.size()));
      const auto bytes = std::as_bytes(std::span(values));
      hash.Update(bytes.data(), bytes.size());
    };
    for (const Side* side : {&pairs(split).source, &pairs(split).target}) {
      add(side->tokens);
      add(side->begins);
    }
  });
}

const std::vector<std::string>& SentencePairs::Reference(Split split, int64_t index) const {
  return pairs(split).references.at(static_cast<size_t>(index));
}

SourceBatch MakeSourceBatch(const std::vector<std::vector<int32_t>>& sentences) {
  SourceBatch batch;
  for (const auto& sentence : sentences) {
    batch.length =
        std::max(batch.length, RoundUp(static_cast<int64_t>(sentence.size()) + kSourceMarks));
  }
  batch.tokens.resize(sentences.size() * static_cast<size_t>(batch.length));
  for (size_t row = 0; row < sentences.size(); ++row) {
    WriteRow(token::kStart, sentences[row], token::kEnd, batch.length,
             batch.tokens.data() + row * static_cast<size_t>(batch.length));
  }
  return batch;
}

}  // namespace dtrain
