// SummedMessages: implements Exchange::SumOverWorkers by messages between drivers, so it works over
// any transport.  Worker 0 adds the values in rank order and sends the sum to the others, so all
// get the same bits.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <vector>

#include "framework/exchange/service.h"

namespace dtrain {

class SummedMessages {
 public:
  // `workers`: number of workers of the run.  `done` is called when a sum is complete.
  SummedMessages(Service& service, int workers, Rank rank, std::function<void()> done);
  SummedMessages(const SummedMessages&) = delete;

  // Starts a sum, which replaces `values`.  The caller owns them and keeps them until `done`.
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
  std::map<Rank, std::vector<double>> parts_;  // values received so far, at worker 0
};

}  // namespace dtrain
