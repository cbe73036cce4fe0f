// InlineExchange: one worker, no network, no thread - every event is handled where it arises.
#pragma once

#include "framework/strategies/driver.h"

namespace dtrain {

class InlineExchange : public Exchange {
 public:
  // `transport` has one rank and is only for AtRest.
  InlineExchange(std::unique_ptr<Driver> driver, Transport& transport)
      : driver_(std::move(driver)), transport_(transport) {}

  Blob Begin() override;
  float* gradients() override { return driver_->gradients(); }
  void Ready(Range range) override;
  StepOutcome End(const StepReport& report) override;
  void AtRest(const std::function<void(Transport&)>& work) override { work(transport_); }
  Blob weights() override { return driver_->weights(); }
  std::span<float* const> solver_state() override { return driver_->solver_state(); }
  double learning_rate() const override { return driver_->learning_rate(); }
  ExchangeStats stats() const override { return {}; }

 private:
  std::unique_ptr<Driver> driver_;
  Transport& transport_;
  Range last_;
};

}  // namespace dtrain
