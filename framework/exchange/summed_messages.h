// SummedMessages: Exchange::SumOverWorkers by messages from driver to driver.  Worker 0 adds, in rank
// order, and tells the others; so any transport serves, and all get the same bits.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <vector>

#include "framework/exchange/service.h"

namespace dtrain {

class SummedMessages {
 public:
  // `workers` in all; `done` is called whenever a sum has come.
  SummedMessages(Service& service, int workers, Rank rank, std::function<void()> done);
  SummedMessages(const SummedMessages&) = delete;

  // `values` become the sum; they stay the caller's and must live until then.
  void Begin(std::span<double> values);
  bool pending() const { return !values_.empty(); }

 private:
  void TakePart(Rank from, std::vector<double> part);
  void End(const std::vector<double>& sum);

  Service& service_;
  const int workers_;
  const Rank rank_;
  const std::function<void()> done_;
  std::span<double> values_;
  std::map<Rank, std::vector<double>> parts_;  // worker 0: what has come for it
};

}  // namespace dtrain
