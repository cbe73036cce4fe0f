#include "framework/bench/network/link_fit.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "framework/core/check.h"
#include "framework/core/statistics.h"

namespace dtrain {
namespace {

constexpr size_t kSlopePoints = 64;  // slopes of all pairs of these points
constexpr size_t kPrefixLeast = 16;  // messages
constexpr double kPlateau = 1.1;     // ratio that still counts as level
constexpr double kBucketSeconds = 1e-3;
constexpr double kLineOverRate = 2;
constexpr double kAgreement = 0.25;

// Returns the median slope over all pairs of the later half (Theil and Sen's estimator), which, unlike a least-squares
// line, is robust against a rank that did not run for a while.
double LongRunRate(std::span<const Arrival> arrivals) {
  const auto later = arrivals.subspan(arrivals.size() / 2);
  const size_t points = std::min(kSlopePoints, later.size());
  const auto at = [&](size_t i) { return later[i * (later.size() - 1) / (points - 1)]; };
  std::vector<double> slopes;
  for (size_t i = 0; i < points; ++i) {
    for (size_t k = i + 1; k < points; ++k) {
      const double seconds = at(k).seconds - at(i).seconds;
      if (seconds > 0) slopes.push_back(static_cast<double>(at(k).bytes - at(i).bytes) / seconds);
    }
  }
  DT_CHECK(!slopes.empty()) << "all messages arrived at once";
  return Median(std::move(slopes));
}

double Excess(const Arrival& arrival, double rate) {
  return static_cast<double>(arrival.bytes) - rate * arrival.seconds;
}

// Returns the bytes ahead of the rate in the second half of the first `prefix` messages.  Segments arrive in bunches of
// up to 64 KB; the last message of a bunch shows the progress of the link.
double ExcessWithin(std::span<const Arrival> arrivals, size_t prefix, double rate) {
  const double gap_least = 0.5 * static_cast<double>(arrivals[0].bytes) / rate;
  std::vector<double> tops;
  for (size_t i = prefix / 2; i < prefix; ++i) {
    const bool is_top =
        i + 1 == arrivals.size() || arrivals[i + 1].seconds - arrivals[i].seconds > gap_least;
    if (is_top) tops.push_back(Excess(arrivals[i], rate));
  }
  return tops.empty() ? Excess(arrivals[prefix - 1], rate) : Median(std::move(tops));
}

// Returns the level at which the excess stays, as early as possible, because an error of the rate accumulates with
// time.  0 if it never stays.
double PlateauOfExcess(std::span<const Arrival> arrivals, double rate) {
  double previous = ExcessWithin(arrivals, kPrefixLeast, rate);
  for (size_t prefix = 2 * kPrefixLeast; prefix <= arrivals.size() / 2; prefix *= 2) {
    const double excess = ExcessWithin(arrivals, prefix, rate);
    if (excess <= kPlateau * previous) return excess;
    previous = excess;
  }
  return 0;
}

// Measures from the first message until slightly more than half of the bucket is used.
double LineRate(std::span<const Arrival> arrivals, double rate, double bucket) {
  size_t last = 1;
  while (last + 1 < arrivals.size() && Excess(arrivals[last], rate) < 0.6 * bucket) ++last;
  const double seconds = arrivals[last].seconds - arrivals[0].seconds;
  const auto bytes = static_cast<double>(arrivals[last].bytes - arrivals[0].bytes);
  return bytes / std::max(seconds, 1e-9);
}

// Fits bucket and line of a stream over a link of this rate.
LinkFit FitAt(std::span<const Arrival> arrivals, double rate) {
  const LinkFit plain{rate, 0, rate};
  if (arrivals.size() < 4 * kPrefixLeast) return plain;
  const double bucket = PlateauOfExcess(arrivals, rate);
  const double bucket_least =
      std::max(2 * static_cast<double>(arrivals[0].bytes), kBucketSeconds * rate);
  if (bucket < bucket_least) return plain;
  const double line = LineRate(arrivals, rate, bucket);
  return line < kLineOverRate * rate ? plain : LinkFit{rate, bucket, line};
}

}  // namespace

LinkFit FitLink(std::span<const Arrivals> streams) {
  double rate = 0;
  for (const Arrivals& arrivals : streams) {
    DT_CHECK(arrivals.size() >= 8) << "a stream of " << arrivals.size() << " messages";
    rate = std::max(rate, LongRunRate(arrivals));
  }
  std::vector<LinkFit> fits;
  for (const Arrivals& arrivals : streams) fits.push_back(FitAt(arrivals, rate));
  std::sort(fits.begin(), fits.end(),
            [](const LinkFit& a, const LinkFit& b) { return a.bucket < b.bucket; });
  const LinkFit middle = fits[fits.size() / 2];
  const auto agreeing = std::count_if(fits.begin(), fits.end(), [&](const LinkFit& fit) {
    return std::abs(fit.bucket - middle.bucket) <= kAgreement * middle.bucket;
  });
  const bool agreed = 2 * agreeing > static_cast<ptrdiff_t>(fits.size());
  return agreed ? middle : LinkFit{rate, 0, rate};
}

}  // namespace dtrain
