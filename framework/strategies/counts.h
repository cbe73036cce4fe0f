// Counts of a strategy, for the section `protocol` of summary.json.
//
// A strategy declares its counters, each with a sentence (Strategy::counters), and its actors count under these names
// (Actor::Report).  Reports, checkpoints, the summary and `dtrain list strategies` follow from the declaration.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/bytes.h"

namespace dtrain {

struct StrategyCounter {
  const char* name;  // the key: "regroups"
  const char* help;
};

// These counters mean the same in every strategy that declares them.  The summary knows them: it divides the first one
// by the gradients, and names the last one where workers have died.
inline constexpr StrategyCounter kUpTransfers = {
    "up_transfers",
    "vectors of the model's size, or what a compressor picked of them, on the way to the weights: "
    "gradients, sums of them and residuals"};
inline constexpr StrategyCounter kDownTransfers = {
    "down_transfers", "vectors of the model's size on the way to the workers: weights"};
inline constexpr StrategyCounter kLostGradients = {
    "lost", "gradients that were handed in and went with a worker or node that died"};

// StrategyCounts holds the numbers of one actor, rank or run by name, in the order of their declaration.
class StrategyCounts {
 public:
  struct One {
    std::string name;
    int64_t value = 0;
    DTRAIN_FIELDS(name, value)
    friend bool operator==(const One&, const One&) = default;
  };

  StrategyCounts() = default;
  explicit StrategyCounts(const std::vector<StrategyCounter>& declared);  // all are 0

  // Counts n more.  A name that was not declared is a bug of the strategy.
  void Count(std::string_view name, int64_t n);
  // Adds all numbers of `other`, `times` each.  Those that are new here come last.
  void Add(const StrategyCounts& other, int64_t times = 1);

  int64_t Total(std::string_view name) const;  // 0 if the strategy has no such counter
  bool Any() const;                            // some number is not 0
  const std::vector<One>& all() const { return all_; }
  std::vector<One>& all() { return all_; }
  DTRAIN_FIELDS(all_)
  friend bool operator==(const StrategyCounts&, const StrategyCounts&) = default;

 private:
  One* Find(std::string_view name);

  std::vector<One> all_;
};

}  // namespace dtrain
