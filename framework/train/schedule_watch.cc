#include "framework/train/schedule_watch.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "framework/comm/gather.h"
#include "framework/core/bytes.h"
#include "framework/core/check.h"
#include "framework/core/log.h"
#include "framework/core/statistics.h"
#include "framework/core/text.h"
#include "framework/setup/run_exchange.h"
#include "framework/setup/schedule_profile.h"
#include "framework/train/step_profile.h"

namespace dtrain {
namespace {

constexpr double kDrift = 0.2;
constexpr double kOfAStep = 0.05;

// Returns the all-reduce time of each bucket: the median over the steps of the shortest time of all ranks.  The
// shortest one is that of the last rank to arrive, for which no other rank had to wait.
std::vector<double> SumsOf(const std::vector<std::vector<double>>& ranks, size_t buckets) {
  std::vector<double> least = ranks.front();
  for (const std::vector<double>& rank : ranks) {
    for (size_t i = 0; i < least.size(); ++i) least[i] = std::min(least[i], rank.at(i));
  }
  std::vector<double> sums;
  for (size_t bucket = 0; bucket < buckets; ++bucket) {
    std::vector<double> steps;
    for (size_t i = bucket; i < least.size(); i += buckets) steps.push_back(least[i]);
    sums.push_back(Median(std::move(steps)));
  }
  return sums;
}

// Returns the factor at `bytes`, interpolated over the logarithm of the size.
double FactorAt(const std::map<int64_t, double>& factors, int64_t bytes) {
  const auto above = factors.lower_bound(bytes);
  if (above == factors.end()) return factors.rbegin()->second;
  if (above == factors.begin() || above->first == bytes) return above->second;
  const auto below = std::prev(above);
  const auto logarithm = [](int64_t size) { return std::log(static_cast<double>(size)); };
  const double part = (logarithm(bytes) - logarithm(below->first)) /
                      (logarithm(above->first) - logarithm(below->first));
  return below->second + part * (above->second - below->second);
}

}  // namespace

double SeenTimes::sum_seconds() const { return std::accumulate(sums.begin(), sums.end(), 0.0); }

bool HasDrifted(double planned, double seen, double step_seconds) {
  const double difference = std::abs(seen - planned);
  return difference > kDrift * planned && difference > kOfAStep * step_seconds;
}

ReduceTable AsSeen(const ReduceTable& idle, const std::vector<Range>& buckets,
                   const std::vector<double>& seconds) {
  std::map<int64_t, std::vector<double>> by_size;
  for (size_t i = 0; i < buckets.size(); ++i) {
    const int64_t bytes = buckets[i].size() * static_cast<int64_t>(sizeof(float));
    const double expected = idle.Seconds(bytes);
    if (expected > 0) by_size[bytes].push_back(seconds.at(i) / expected);
  }
  std::map<int64_t, double> factors;
  for (const auto& [bytes, all] : by_size) factors[bytes] = Median(all);
  ReduceTable table = idle;
  if (factors.empty()) return table;
  for (ReduceTable::Entry& entry : table.entries) entry.seconds *= FactorAt(factors, entry.bytes);
  return table;
}

bool ScheduleWatch::Look(Exchange& exchange, int64_t step, bool replan) {
  bool anew = false;
  exchange.AtBoundary([&](Transport& transport) {
    anew = Look(transport, exchange.all_reduce_times(), step, replan);
  });
  if (anew) exchange.SetBuckets(plan_.buckets);
  return anew;
}

// The early returns are the same on all ranks, since all have had the same steps.
bool ScheduleWatch::Look(Transport& transport, AllReduceTimes& sums, int64_t step, bool replan) {
  if (plan_.compute_seconds <= 0) return false;  // the plan was not made from known times
  // During a density warm-up, steps send more than the plan assumes.
  const CompressConfig& compress = config_.compress;
  const int64_t last = step - 1, epoch = spec_.rule.EpochOfStep(last);
  if (compress.selects() && compress.DensityAt(epoch, last) != compress.density) {
    sums.Clear();
    ready_.Clear();
    return false;
  }
  if (sums.steps().size() < kLeastSteps || ready_.steps() < sums.steps().size()) return false;
  const SeenTimes seen = Join(transport, sums);
  bool drifted = transport.rank() == 0 && CheckDrift(seen, step);
  drifted = Broadcast(transport, drifted ? "drift" : "") == "drift";
  if (!drifted || !replan || !Replan(transport, seen, step)) return false;
  sums.Clear();
  ready_.Clear();
  ++replans_;
  return true;
}

// Combines the times of all ranks on rank 0; the other ranks get an empty result.
SeenTimes ScheduleWatch::Join(Transport& transport, const AllReduceTimes& sums) const {
  std::vector<double> mine;
  for (const std::vector<double>& step : sums.steps()) {
    DT_CHECK(step.size() == plan_.buckets.size())
        << step.size() << " sums, " << plan_.buckets.size() << " buckets in the plan";
    mine.insert(mine.end(), step.begin(), step.end());
  }
  SeenTimes seen;
  const std::vector<std::string> ready = Gather(transport, ToBytes(ready_.Medians()));
  const std::vector<std::string> all = Gather(transport, ToBytes(mine));
  if (transport.rank() != 0) return seen;
  seen.ready = LastOf(ready);
  std::vector<std::vector<double>> ranks;
  for (const std::string& bytes : all) ranks.push_back(FromBytes<std::vector<double>>(bytes));
  seen.sums = SumsOf(ranks, plan_.buckets.size());
  return seen;
}

bool ScheduleWatch::CheckDrift(const SeenTimes& seen, int64_t step) {
  const double whole = plan_.predicted_seconds;
  if (!HasDrifted(plan_.compute_seconds, seen.compute_seconds(), whole) &&
      !HasDrifted(plan_.sum_seconds, seen.sum_seconds(), whole)) {
    return false;
  }
  if (drift_) return true;
  drift_ = {step, plan_.compute_seconds, seen.compute_seconds(), plan_.sum_seconds,
            seen.sum_seconds()};
  log::Warning(
      "step {}: {} was planned for {:.4f} s of computing and {:.4f} s of sums in a step; by now "
      "they "
      "take {:.4f} s and {:.4f} s{}",
      step, config_.strategy_name, drift_->compute_planned, drift_->sums_planned,
      drift_->compute_seen, drift_->sums_seen,
      config_.replan ? "" : " (strategy.replan: epoch plans anew)");
  return true;
}

// Returns false if a stop signal arrived during the measurement.
bool ScheduleWatch::Replan(Transport& transport, const SeenTimes& seen, int64_t step) {
  const std::optional<ReduceTable> idle = MeasureAllReduceTimes(transport, spec_);
  if (!idle) return false;
  const bool root = transport.rank() == 0;
  if (root) {
    LayerGradients layer_gradients = spec_.layer_gradients;
    layer_gradients.ready = seen.ready;
    layer_gradients.reduce_seconds = ReduceTimeOf(AsSeen(*idle, plan_.buckets, seen.sums));
    const auto before = static_cast<int64_t>(plan_.buckets.size());
    DecideBuckets(config_, layer_gradients, plan_);
    log::Info("step {}: planned anew, after {}: {}", step, Counted(before, "bucket"),
              DescribeBuckets(config_, layer_gradients, plan_));
  }
  plan_ = PlanFromJson(Broadcast(transport, root ? ToJson(plan_) : ""), "rank 0's plan");
  return true;
}

void ScheduleWatch::Describe(PlanSummary& summary) const {
  summary.drift = drift_;
  summary.replans = replans_;
}

}  // namespace dtrain
