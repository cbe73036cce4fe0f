// CodedWorkers: the workers of a run with a coder in one place, with a residual each.  They encode one after the other,
// their words are added or gathered, and all decode.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/compress/coding.h"
#include "tests/support/strategy_text.h"

namespace dtrain {

class CodedWorkers {
 public:
  using Numbers = std::vector<float>;

  // `parameters`: ascending; gradients and sums are indexed by their positions.
  CodedWorkers(const std::string& compress, std::vector<ArenaEntry> parameters, int workers,
               uint64_t seed)
      : config_(MakeCompress(compress)),
        parameters_(std::move(parameters)),
        residuals_(static_cast<size_t>(workers), Numbers(size())) {
    for (int w = 0; w < workers; ++w) {
      codings_.push_back(config_.coder()->MakeCoding(parameters_, workers, seed));
    }
  }

  // Adds these gradients.  Returns the decoded sum, the same for all.
  Numbers Step(const std::vector<Numbers>& gradients) {
    for (size_t w = 0; w < codings_.size(); ++w) {
      for (size_t i = 0; i < size(); ++i) residuals_[w][i] += gradients[w][i];
    }
    std::vector<std::vector<Numbers>> kept;  // by round and worker, until Finish
    for (size_t round = 0; round < codings_[0]->rounds().size(); ++round) {
      kept.push_back(WordsOf(round));
      Exchange(round, kept.back());
    }
    std::vector<Numbers> sums(codings_.size(), Numbers(size()));
    for (size_t w = 0; w < codings_.size(); ++w) {
      for (size_t p = 0; p < parameters_.size(); ++p) {
        const int64_t begin = parameters_[p].range.begin;
        codings_[w]->Finish(p, residuals_[w].data() + begin, sums[w].data() + begin);
      }
      EXPECT_EQ(sums[w], sums[0]) << "worker " << w;
    }
    return sums[0];
  }

  const Numbers& residual(size_t w) const { return residuals_[w]; }
  Coding& coding(size_t w) { return *codings_[w]; }

 private:
  size_t size() const { return static_cast<size_t>(parameters_.back().range.end); }

  std::vector<Numbers> WordsOf(size_t round) {
    std::vector<Numbers> words;
    for (size_t w = 0; w < codings_.size(); ++w) {
      words.emplace_back(static_cast<size_t>(codings_[w]->rounds()[round].words));
      for (size_t p = 0; p < parameters_.size(); ++p) {
        codings_[w]->Encode(static_cast<int>(round), p,
                            residuals_[w].data() + parameters_[p].range.begin, words[w].data());
      }
    }
    return words;
  }

  void Exchange(size_t round, std::vector<Numbers>& words) {
    std::vector<std::span<const float>> parts;
    if (codings_[0]->rounds()[round].gathered) {
      for (const Numbers& of_worker : words) parts.emplace_back(of_worker);
    } else {
      for (size_t w = 1; w < words.size(); ++w) {
        for (size_t i = 0; i < words[0].size(); ++i) words[0][i] += words[w][i];
      }
      parts.emplace_back(words[0]);
    }
    for (const auto& coding : codings_) coding->Decode(static_cast<int>(round), parts);
  }

  const CompressConfig config_;
  const std::vector<ArenaEntry> parameters_;
  std::vector<std::unique_ptr<Coding>> codings_;
  std::vector<Numbers> residuals_;
};

}  // namespace dtrain
