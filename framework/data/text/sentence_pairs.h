// SentencePairs: sentences and their translations, as numbers of two vocabularies, in memory - what
// the loaders of parallel text make.
//
// Three fields (token numbers: data/text/vocabulary.h), each as long as the longest sentence of the
// batch, rounded up to a multiple of kLengthStep so that few shapes occur; <pad> behind the shorter
// ones:
//   "source" [S]  <sos> w.. <eos>
//   "target" [T]  <sos> w1..wn     what a decoder is fed
//   "label"  [T]  w1..wn <eos>     what it should say
// The terms of a loss are the labels that are no <pad>: n + 1 of a sentence.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "framework/data/dataset.h"
#include "framework/data/text/tokenizer.h"
#include "framework/data/text/vocabulary.h"

namespace dtrain {

// Words of one split, line by line; the two sides have as many lines.
struct ParallelText {
  std::vector<std::vector<std::string>> source;
  std::vector<std::vector<std::string>> target;
  // Of the lines whose target was cut: all of it, which translations are compared with.
  std::map<size_t, std::vector<std::string>> whole_target;
};

// TextFacts turn text into numbers and back; a checkpoint keeps them with the weights.
struct TextFacts {
  Language source_language = Language::kGerman;
  Language target_language = Language::kEnglish;
  bool escaped = false;  // the words are as in tokenised files (Tokenizer)
  Vocabulary source;
  Vocabulary target;

  std::string Hash() const;    // SHA-256 of ToText
  std::string ToText() const;  // the inverse of TextFactsFromText
};

// Throws DataError, naming `origin`, where `text` is no TextFacts::ToText.
TextFacts TextFactsFromText(const std::string& text, const std::string& origin);

// The three fields for these longest lengths and vocabulary sizes.
std::vector<FieldSpec> SentenceFields(int64_t source_length, int64_t target_length,
                                      int64_t source_words, int64_t target_words);

class SentencePairs : public Dataset {
 public:
  static constexpr int64_t kLengthStep = 4;

  // `splits`: training, validation, test.
  SentencePairs(TextFacts facts, const std::array<ParallelText, 3>& splits);

  int64_t size(Split split) const override;
  std::vector<FieldSpec> fields() const override;
  int64_t classes() const override { return facts_.target.size(); }
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

  std::span<const int32_t> Source(Split split, int64_t index) const {
    return pairs(split).source.Sentence(index);
  }
  const TextFacts& facts() const { return facts_; }
  // The translation of sample `index` as it was read: unknown words included, never cut.
  const std::vector<std::string>& Reference(Split split, int64_t index) const;

 private:
  struct Side {
    std::vector<int32_t> tokens;  // of all sentences, one after the other, without marks
    std::vector<int64_t> begins;  // sentence i: [begins[i], begins[i + 1])
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

  TextFacts facts_;
  std::array<Pairs, 3> pairs_;
};

// Sentences as the "source" field of a batch has them: [sentences, length] numbers.
struct SourceBatch {
  int64_t length = 0;
  std::vector<int32_t> tokens;
};
SourceBatch MakeSourceBatch(const std::vector<std::vector<int32_t>>& sentences);

}  // namespace dtrain
