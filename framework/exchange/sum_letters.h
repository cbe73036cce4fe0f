// SumLetters: Exchange::SumOverWorkers by letters from driver to driver.  Worker 0 adds, in rank
// order, and tells the others; so any transport serves, and all get the same bits.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <vector>

#include "framework/exchange/driver.h"

namespace dtrain {

class SumLetters {
 public:
  // `rank`: this one's.  `done` is called whenever a sum has come.
  SumLetters(Driver& driver, const Placement& placement, Rank rank, std::function<void()> done);

  // `values` become the sum; they stay the caller's and must live until then.
  void Begin(std::span<double> values);
  bool pending() const { return !values_.empty(); }

  // False when the letter does not belong to a sum.
  bool OnLetter(const Letter& letter);

 private:
  void TakePart(Rank from, std::span<const int64_t> part);
  void End(std::span<const int64_t> sum);

  Driver& driver_;
  const int workers_;
  const Rank rank_;
  const std::function<void()> done_;
  std::span<double> values_;
  std::map<Rank, std::vector<int64_t>> parts_;  // worker 0: what has come for it
};

}  // namespace dtrain
