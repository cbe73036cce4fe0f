#include "framework/evaluate/translator.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>

#include "framework/core/random.h"
#include "framework/data/text/vocabulary.h"

namespace dtrain {
namespace {

// P(next word) is a function of the sentence and of all words before.  The decoder gets its state only from the
// caller's `parents`, so that an error in following them shows.
class HashedDecoder : public StepDecoder {
 public:
  HashedDecoder(std::vector<int64_t> sentences, int64_t words)
      : names_(std::move(sentences)), vocabulary_(token::kFirstWord + words) {
    for (const int64_t name : names_) rows_.push_back({name, {}});
  }

  void Start(const KernelArgs&) override {}
  void Step(std::span<const int64_t> parents, std::span<const int32_t> tokens,
            float* log_probabilities) override {
    std::vector<Row> next;
    for (size_t h = 0; h < parents.size(); ++h) {
      Row row = rows_.at(static_cast<size_t>(parents[h]));
      if (tokens[h] != token::kStart) row.second.push_back(tokens[h]);
      const std::vector<double> scores = ScoresOf(row.first, row.second, vocabulary_);
      std::copy(scores.begin(), scores.end(), log_probabilities + h * scores.size());
      next.push_back(std::move(row));
    }
    rows_ = std::move(next);
  }
  int64_t vocabulary() const override { return vocabulary_; }
  int64_t sentences() const override { return static_cast<int64_t>(names_.size()); }

  static std::vector<double> ScoresOf(int64_t sentence, const std::vector<int32_t>& before,
                                      int64_t vocabulary) {
    uint64_t key = static_cast<uint64_t>(sentence) + 1;
    for (const int32_t word : before) key = key * 31 + static_cast<uint64_t>(word);
    const Random random(7, Purpose::kSelfTest, key);
    std::vector<double> scores;
    double sum = 0;
    for (int64_t v = 0; v < vocabulary; ++v) {
      scores.push_back(2 * random.Normal(static_cast<uint64_t>(v)));
      sum += std::exp(scores.back());
    }
    // Rounded as the decoder's fp32 scores.
    for (double& score : scores) score = static_cast<float>(score - std::log(sum));
    return scores;
  }

 private:
  using Row = std::pair<int64_t, std::vector<int32_t>>;
  std::vector<int64_t> names_;
  int64_t vocabulary_;
  std::vector<Row> rows_;
};

bool IsSaid(int32_t word) { return word != token::kPad && word != token::kStart; }

std::vector<int32_t> Greedy(int64_t sentence, int64_t vocabulary, int64_t max_length) {
  std::vector<int32_t> words;
  while (static_cast<int64_t>(words.size()) < max_length) {
    const std::vector<double> scores = HashedDecoder::ScoresOf(sentence, words, vocabulary);
    int32_t best = 0;
    for (int32_t word = 0; word < vocabulary; ++word) {
      if (IsSaid(word) && scores[word] > scores[best]) best = word;
    }
    if (best == token::kEnd) break;
    words.push_back(best);
  }
  return words;
}

// Returns the answer with the best mean score among all possible ones.
std::vector<int32_t> Exhaustive(int64_t sentence, int64_t vocabulary, int64_t max_length) {
  std::vector<int32_t> best;
  double best_mean = -1e30;
  const auto consider = [&](const std::vector<int32_t>& words, double mean) {
    if (mean > best_mean) {
      best_mean = mean;
      best = words;
    }
  };
  const std::function<void(std::vector<int32_t>, double)> visit = [&](std::vector<int32_t> words,
                                                                      double score) {
    const double length = static_cast<double>(words.size());
    if (static_cast<int64_t>(words.size()) == max_length) return consider(words, score / length);
    const std::vector<double> scores = HashedDecoder::ScoresOf(sentence, words, vocabulary);
    consider(words, (score + scores[token::kEnd]) / (length + 1));
    for (int32_t word = 0; word < vocabulary; ++word) {
      if (!IsSaid(word) || word == token::kEnd) continue;
      std::vector<int32_t> longer = words;
      longer.push_back(word);
      visit(longer, score + scores[word]);
    }
  };
  visit({}, 0);
  return best;
}

std::vector<int64_t> Names(int64_t count) {
  std::vector<int64_t> names(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) names[i] = i;
  return names;
}

TEST(BeamSearch, ABeamOfOneIsGreedy) {
  HashedDecoder decoder(Names(40), 6);
  const auto answers = BeamSearch(decoder, {.beam = 1, .max_length = 12});
  ASSERT_EQ(answers.size(), 40u);
  for (int64_t s = 0; s < 40; ++s) EXPECT_EQ(answers[s], Greedy(s, 10, 12)) << s;
}

TEST(BeamSearch, AWideBeamFindsTheBest) {
  HashedDecoder decoder(Names(20), 2);
  const auto answers = BeamSearch(decoder, {.beam = 400, .max_length = 4});
  for (int64_t s = 0; s < 20; ++s) EXPECT_EQ(answers[s], Exhaustive(s, 6, 4)) << s;
}

TEST(BeamSearch, SentencesDoNotSeeEachOther) {
  HashedDecoder all(Names(30), 6);
  const auto together = BeamSearch(all, {.beam = 3, .max_length = 9});
  for (int64_t s = 0; s < 30; ++s) {
    HashedDecoder one({s}, 6);
    EXPECT_EQ(BeamSearch(one, {.beam = 3, .max_length = 9})[0], together[s]);
  }
}

// All words have the same probability except the end of the sentence.
class EvenDecoder : public StepDecoder {
 public:
  void Start(const KernelArgs&) override {}
  void Step(std::span<const int64_t> parents, std::span<const int32_t>,
            float* log_probabilities) override {
    for (size_t h = 0; h < parents.size(); ++h) {
      for (int64_t word = 0; word < vocabulary(); ++word) {
        *log_probabilities++ = word == token::kEnd ? -9.0f : -1.0f;
      }
    }
  }
  int64_t vocabulary() const override { return 7; }
  int64_t sentences() const override { return 1; }
};

TEST(BeamSearch, OfEqualsTheFirstCounts) {
  for (const int64_t beam : {1, 2, 3, 9}) {
    EvenDecoder decoder;
    EXPECT_THAT(BeamSearch(decoder, {.beam = beam, .max_length = 2}),
                testing::ElementsAre(testing::ElementsAre(0, 0)));
  }
}

}  // namespace
}  // namespace dtrain
