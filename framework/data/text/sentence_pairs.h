// SentencePairs holds sentences and their translations in memory, as numbers of two vocabularies.  The loaders of
// parallel text make it.
//
// Three fields (token numbers: data/text/vocabulary.h), each as long as the longest sentence of the
// batch, rounded up to a multiple of kLengthStep so that few shapes occur; <pad> fills up shorter sentences:
//   "source" [S]  <sos> w.. <eos>
//   "target" [T]  <sos> w1..wn     input of the decoder
//   "label"  [T]  w1..wn <eos>     expected output of the decoder
// The terms of a loss are the labels other than <pad>: n + 1 per sentence.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "framework/data/dataset.h"
#include "framework/data/text/tokenizer.h"
#include "framework/data/text/vocabulary.h"

namespace dtrain {

// Words of one split, line by line; both sides have the same number of lines.
struct ParallelText {
  std::vector<std::vector<std::string>> source;
  std::vector<std::vector<std::string>> target;
  // The uncut targets, by line, of those that were cut; translations are compared with them.
  std::map<size_t, std::vector<std::string>> whole_target;
};

// TextInfo converts text to numbers and back; a checkpoint keeps it with the weights.
struct TextInfo {
  Language source_language = Language::kGerman;
  Language target_language = Language::kEnglish;
  bool escaped = false;  // words are escaped as in tokenised files (Tokenizer)
  Vocabulary source;
  Vocabulary target;

  std::string Hash() const;    // SHA-256 of ToText
  std::string ToText() const;  // parsed by TextInfoFromText
};

// Throws DataError, naming `origin`, if `text` is not one of TextInfo::ToText.
TextInfo TextInfoFromText(const std::string& text, const std::string& origin);

// Returns the three fields for these maximal lengths and vocabulary sizes.
std::vector<FieldSpec> SentenceFields(int64_t source_length, int64_t target_length,
                                      int64_t source_words, int64_t target_words);

class SentencePairs : public Dataset {
 public:
  static constexpr int64_t kLengthStep = 4;

  // `splits` are training, validation and test.
  SentencePairs(TextInfo info, const std::array<ParallelText, 3>& splits);

  int64_t size(Split split) const override;
  std::vector<FieldSpec> fields() const override;
  int64_t classes() const override { return info_.target.size(); }
  bool has_validation() const override { return size(Split::kValidation) > 0; }
  int64_t Terms(Split split, int64_t index) const override;
  std::vector<SampleLength> Lengths(Split split) const override;
  void SampleShapes(Split split, std::span<const int64_t> indices,
                    std::span<Shape> shapes) const override;
  void Fill(Split split, std::span<const int64_t> indices, uint64_t epoch,
            Batch& batch) const override;
  std::string ManifestHash() const override { return Hashes().all; }
  DataHashes Hashes() const override;
  const SentencePairs* sentence_pairs() const override { return this; }
  const DataNotes* notes() const override { return notes_ ? &*notes_ : nullptr; }
  void Note(DataNotes notes) { notes_ = std::move(notes); }  // of a user's own files

  std::span<const int32_t> Source(Split split, int64_t index) const {
    return pairs(split).source.Sentence(index);
  }
  const TextInfo& info() const { return info_; }
  // Returns the translation of sample `index` as it was read: with unknown words, never cut.
  const std::vector<std::string>& Reference(Split split, int64_t index) const;

 private:
  struct Side {
    std::vector<int32_t> tokens;  // all sentences concatenated, without marks
    std::vector<int64_t> begins;  // sentence i is [begins[i], begins[i + 1])
    std::span<const int32_t> Sentence(int64_t index) const;
    int64_t LengthOf(int64_t index) const { return begins[index + 1] - begins[index]; }
    int64_t longest() const;
  };
  struct Pairs {
    Side source, target;
    std::vector<std::vector<std::string>> references;
  };

  static Side Numbered(const std::vector<std::vector<std::string>>& sentences,
                       const Vocabulary& vocabulary);
  const Pairs& pairs(Split split) const { return pairs_[static_cast<size_t>(split)]; }

  TextInfo info_;
  std::optional<DataNotes> notes_;
  std::array<Pairs, 3> pairs_;
};

// Sentences as a batch's "source" field: [sentences, length] numbers.
struct SourceBatch {
  int64_t length = 0;
  std::vector<int32_t> tokens;
};
SourceBatch MakeSourceBatch(const std::vector<std::vector<int32_t>>& sentences);

}  // namespace dtrain
