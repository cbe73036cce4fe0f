#include "framework/evaluate/translator.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "framework/data/text/vocabulary.h"

namespace dtrain {
namespace {

struct Hypothesis {
  int64_t sentence;
  std::vector<int32_t> words;
  double score;  // sum of log probabilities
};

// Describes a possible next hypothesis: row `parent` of the last step, followed by a word.
struct Candidate {
  int64_t parent;
  int32_t word;
  double score;
};

class Search {
 public:
  Search(StepDecoder& decoder, const SearchOptions& options)
      : decoder_(decoder), options_(options), best_(decoder.sentences()) {
    for (int64_t s = 0; s < decoder.sentences(); ++s) live_.push_back({s, {}, 0});
    open_.assign(static_cast<size_t>(decoder.sentences()), options.beam);
    parents_.resize(live_.size());
    std::iota(parents_.begin(), parents_.end(), 0);
    tokens_.assign(live_.size(), token::kStart);
  }

  std::vector<std::vector<int32_t>> Run() {
    for (int64_t length = 0; length < options_.max_length && !live_.empty(); ++length) Step();
    for (const Hypothesis& cut : live_) End(cut, cut.words.size());
    std::vector<std::vector<int32_t>> answers;
    for (Best& best : best_) answers.push_back(std::move(best.words));
    return answers;
  }

 private:
  struct Best {
    std::vector<int32_t> words;
    std::optional<double> mean;  // empty until a hypothesis has ended
  };

  void Step() {
    log_probabilities_.resize(live_.size() * static_cast<size_t>(decoder_.vocabulary()));
    decoder_.Step(parents_, tokens_, log_probabilities_.data());
    const std::vector<Hypothesis> before = std::exchange(live_, {});
    parents_.clear();
    tokens_.clear();
    for (size_t begin = 0; begin < before.size();) {  // a sentence's hypotheses are adjacent
      size_t end = begin;
      while (end < before.size() && before[end].sentence == before[begin].sentence) ++end;
      GoOn(before, begin, end);
      begin = end;
    }
  }

  // Extends the hypotheses of one sentence, the rows [begin, end) of `before`.
  void GoOn(const std::vector<Hypothesis>& before, size_t begin, size_t end) {
    int64_t& open = open_[static_cast<size_t>(before[begin].sentence)];
    const size_t room = static_cast<size_t>(open);
    std::vector<Candidate> candidates;
    for (size_t row = begin; row < end; ++row) Offer(row, before[row].score, room, candidates);
    for (const Candidate& next : candidates) {
      Hypothesis longer = before[static_cast<size_t>(next.parent)];
      longer.score = next.score;
      if (next.word == token::kEnd) {
        End(longer, longer.words.size() + 1);
        --open;
        continue;
      }
      longer.words.push_back(next.word);
      live_.push_back(std::move(longer));
      parents_.push_back(next.parent);
      tokens_.push_back(next.word);
    }
  }

  // Inserts the words that may follow `row` into the `room` best candidates, sorted by score.
  void Offer(size_t row, double score, size_t room, std::vector<Candidate>& candidates) const {
    const int64_t vocabulary = decoder_.vocabulary();
    const float* scores = log_probabilities_.data() + row * static_cast<size_t>(vocabulary);
    for (int32_t word = 0; word < vocabulary; ++word) {
      if (word == token::kPad || word == token::kStart) continue;
      const double sum = score + static_cast<double>(scores[word]);
      if (candidates.size() == room && !(sum > candidates.back().score)) continue;
      const auto place = std::find_if(candidates.begin(), candidates.end(),
                                      [sum](const Candidate& other) { return sum > other.score; });
      candidates.insert(place, {static_cast<int64_t>(row), word, sum});
      if (candidates.size() > room) candidates.pop_back();
    }
  }

  void End(const Hypothesis& hypothesis, size_t length) {
    Best& best = best_[static_cast<size_t>(hypothesis.sentence)];
    const double mean = hypothesis.score / static_cast<double>(length);
    if (best.mean && !(mean > *best.mean)) return;
    best = {hypothesis.words, mean};
  }

  StepDecoder& decoder_;
  const SearchOptions options_;
  std::vector<Hypothesis> live_;  // in the order of the sentences
  std::vector<int64_t> open_;     // by sentence: the current width of its beam
  std::vector<Best> best_;        // by sentence
  std::vector<int64_t> parents_;
  std::vector<int32_t> tokens_;
  std::vector<float> log_probabilities_;
};

}  // namespace

std::vector<std::vector<int32_t>> BeamSearch(StepDecoder& decoder, const SearchOptions& options) {
  return Search(decoder, options).Run();
}

}  // namespace dtrain
