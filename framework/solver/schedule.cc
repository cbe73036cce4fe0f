#include "framework/solver/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace dtrain {

double RunProgress::share() const { return std::clamp(epochs_done / epochs_total, 0.0, 1.0); }

namespace {

double HalfCosine(double from, double to, double share) {
  return to + (from - to) * 0.5 * (1 + std::cos(std::numbers::pi * share));
}

Schedule ReadConstant(config::Reader&) {
  return [](const RunProgress&) { return 1.0; };
}

double ReadFactor(config::Reader& reader) {
  return reader.Number("factor", 0.1)
      .Above(0)
      .Help("factor by which each step multiplies the learning rate");
}

Schedule FactorAt(std::vector<double> at, double factor) {
  return [=](const RunProgress& progress) {
    const auto passed = std::upper_bound(at.begin(), at.end(), progress.epochs_done) - at.begin();
    return std::pow(factor, static_cast<double>(passed));
  };
}

std::vector<double> ReadAt(config::Reader& reader) {
  std::vector<double> at = reader.Numbers("at", {}).Above(0).Help(
      "epochs after which the learning rate is multiplied by factor");
  if (!std::is_sorted(at.begin(), at.end())) {
    reader.AddError("at", "the epochs in 'at' are not in ascending order");
  }
  return at;
}

Schedule ReadStep(config::Reader& reader) {
  const double every =
      reader.Number("every", 0).Min(0).Help("multiply every N epochs; or list the epochs in at");
  const std::vector<double> at = ReadAt(reader);
  const double factor = ReadFactor(reader);
  if ((every > 0) == !at.empty()) {
    reader.AddError("", "schedule 'step' needs one of 'every' and 'at'",
                    "every: 30 steps after each 30 epochs; at: [6, 8] after epochs 6 and 8",
                    {"every", "at"});
  }
  if (!at.empty()) return FactorAt(at, factor);
  return [=](const RunProgress& progress) {
    return std::pow(factor, std::floor(progress.epochs_done / every));
  };
}

Schedule ReadMultistep(config::Reader& reader) {
  const std::vector<double> at = ReadAt(reader);
  const double factor = ReadFactor(reader);
  if (at.empty()) {
    reader.AddError("", "schedule 'multistep' needs 'at'", "as in at: [6, 8]", {"at"});
  }
  return FactorAt(at, factor);
}

double ReadTo(config::Reader& reader) {
  return reader.Number("to", 0).Min(0).Max(1).Help("final learning rate, as a fraction of lr");
}

Schedule ReadCosine(config::Reader& reader) {
  const double to = ReadTo(reader);
  return [=](const RunProgress& progress) { return HalfCosine(1, to, progress.share()); };
}

Schedule ReadPolynomial(config::Reader& reader) {
  const double power = reader.Number("power", 1).Above(0).Help("exponent; 1 is a straight line");
  const double to = ReadTo(reader);
  return [=](const RunProgress& progress) {
    return to + (1 - to) * std::pow(1 - progress.share(), power);
  };
}

Schedule ReadOneCycle(config::Reader& reader) {
  const double rise = reader.Number("rise", 0.3)
                          .Above(0)
                          .Below(1)
                          .Help("fraction of the run in which the learning rate rises");
  const double start_divisor =
      reader.Number("start_divisor", 25).Min(1).Help("initial learning rate: lr / start_divisor");
  const double end_divisor = reader.Number("end_divisor", 1e4)
                                 .Min(1)
                                 .Help("final learning rate: lr / start_divisor / end_divisor");
  return [=](const RunProgress& progress) {
    const double start = 1 / start_divisor;
    const double share = progress.share();
    if (share < rise) return HalfCosine(start, 1, share / rise);
    return HalfCosine(1, start / end_divisor, (share - rise) / (1 - rise));
  };
}

DTRAIN_SCHEDULE("constant", ReadConstant, "a constant learning rate");
DTRAIN_SCHEDULE("step", ReadStep, "multiplies by factor every N epochs, or at listed epochs");
DTRAIN_SCHEDULE("multistep", ReadMultistep, "multiplies by factor at listed epochs");
DTRAIN_SCHEDULE("cosine", ReadCosine, "cosine decay to a fraction of lr");
DTRAIN_SCHEDULE("polynomial", ReadPolynomial, "polynomial decay to a fraction of lr");
DTRAIN_SCHEDULE("one_cycle", ReadOneCycle, "rises to lr, then falls to nearly 0");

}  // namespace

Schedule ReadSchedule(config::Reader reader) {
  const std::string name = reader.String("name", "constant")
                               .OneOf(ScheduleRegistry::Names())
                               .Help("learning-rate schedule");
  return ScheduleRegistry::Get("schedule", name).read(reader);
}

}  // namespace dtrain
