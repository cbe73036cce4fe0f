// BLEU of a corpus (Papineni, Roukos, Ward, Zhu, "BLEU: a method for automatic evaluation of machine translation", ACL
// 2002) with one reference for each sentence: the geometric mean of the precisions of 1- to 4-grams times the brevity
// penalty, times 100, as Moses's multi-bleu.perl, without smoothing.
//
// Counts are whole numbers, so they may be added in any order and on any rank.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace dtrain {

struct BleuCounts {
  static constexpr int kMaxOrder = 4;

  // N-grams that also occur in the reference, clipped; n = 1..4.
  std::array<int64_t, kMaxOrder> matches{};
  std::array<int64_t, kMaxOrder> totals{};  // n-grams of the translation
  int64_t length = 0;                       // words of the translation
  int64_t reference_length = 0;

  void Add(const std::vector<std::string>& translation, const std::vector<std::string>& reference);
  void Add(const BleuCounts& other);
  // Returns 0 to 100; 0 if any order has no match.
  double Score() const;
};

}  // namespace dtrain
