#include "framework/strategies/inline_exchange.h"

namespace dtrain {

Blob InlineExchange::Begin() {
  driver_->Begin();
  return driver_->weights();
}

void InlineExchange::Ready(Range range) {
  if (driver_->IsLast(range)) {
    last_ = range;
  } else {
    driver_->Ready(range);
  }
}

// Nothing is applied before End: the trainer has then dropped its reference and the update happens
// in place.
StepOutcome InlineExchange::End(const StepReport& report) {
  driver_->ReadyLast(last_, report);
  while (driver_->Progress()) {
  }
  return driver_->outcome();
}

}  // namespace dtrain
