#include "framework/data/text/bleu.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace dtrain {
namespace {

using Ngrams = std::map<std::vector<std::string>, int64_t>;

Ngrams NgramsOf(const std::vector<std::string>& words, size_t order) {
  Ngrams counts;
  for (size_t i = 0; i + order <= words.size(); ++i) {
    const auto first = words.begin() + static_cast<std::ptrdiff_t>(i);
    ++counts[{first, first + static_cast<std::ptrdiff_t>(order)}];
  }
  return counts;
}

}  // namespace

void BleuCounts::Add(const std::vector<std::string>& translation,
                     const std::vector<std::string>& reference) {
  length += static_cast<int64_t>(translation.size());
  reference_length += static_cast<int64_t>(reference.size());
  for (int n = 0; n < kMaxOrder; ++n) {
    const Ngrams expected = NgramsOf(reference, static_cast<size_t>(n) + 1);
    for (const auto& [words, count] : NgramsOf(translation, static_cast<size_t>(n) + 1)) {
      totals[n] += count;
      const auto found = expected.find(words);
      if (found != expected.end()) matches[n] += std::min(count, found->second);
    }
  }
}

void BleuCounts::Add(const BleuCounts& other) {
  for (int n = 0; n < kMaxOrder; ++n) {
    matches[n] += other.matches[n];
    totals[n] += other.totals[n];
  }
  length += other.length;
  reference_length += other.reference_length;
}

double BleuCounts::Score() const {
  double log_precision = 0;
  for (int n = 0; n < kMaxOrder; ++n) {
    if (matches[n] == 0) return 0;
    log_precision += std::log(static_cast<double>(matches[n]) / static_cast<double>(totals[n]));
  }
  const double brevity =
      std::min(0.0, 1 - static_cast<double>(reference_length) / static_cast<double>(length));
  return 100 * std::exp(log_precision / kMaxOrder + brevity);
}

}  // namespace dtrain
