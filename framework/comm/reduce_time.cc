#include "framework/comm/reduce_time.h"

#include <algorithm>
#include <vector>

#include "framework/core/check.h"
#include "framework/core/statistics.h"
#include "framework/core/time.h"

namespace dtrain {
namespace {

constexpr int64_t kLeast = 64;  // bytes
constexpr int kTimes = 5;

}  // namespace

double ReduceTable::Seconds(int64_t bytes) const {
  if (entries.empty()) return 0;
  if (entries.size() == 1 || bytes <= entries.front().bytes) return entries.front().seconds;
  const auto above = std::find_if(entries.begin() + 1, entries.end() - 1,
                                  [bytes](const Entry& entry) { return entry.bytes >= bytes; });
  const Entry& to = *above;
  const Entry& from = *(above - 1);
  const double slope = (to.seconds - from.seconds) / static_cast<double>(to.bytes - from.bytes);
  return from.seconds + slope * static_cast<double>(bytes - from.bytes);
}

int64_t SmallBytesOf(const std::string& collective, int world) {
  const CollectiveRulesOf rules_of = ScheduleRulesOf(collective);
  if (rules_of == nullptr) return 0;
  const CollectiveRules rules = rules_of(world);
  return rules.small_scheduler == nullptr ? 0 : rules.small_bytes;
}

std::vector<int64_t> SizesToMeasure(int64_t bytes_most, int64_t small_bytes) {
  const int64_t most = std::max(bytes_most, kLeast);
  const int64_t small = small_bytes - small_bytes % static_cast<int64_t>(sizeof(float));
  std::vector<int64_t> sizes;
  for (int64_t bytes = kLeast; bytes < small; bytes *= 8) sizes.push_back(bytes);
  if (small > 0) sizes.push_back(small);
  for (int64_t bytes = std::max(small, kLeast); bytes < most; bytes *= 4) {
    sizes.push_back(small > 0 ? bytes + kLeast : bytes);
  }
  sizes.erase(std::lower_bound(sizes.begin(), sizes.end(), most), sizes.end());
  sizes.push_back(most);
  return sizes;
}

ReduceTable MeasureSums(Transport& transport, const std::vector<int64_t>& sizes,
                        const std::function<bool()>& go_on,
                        const std::function<void(size_t i)>& sum) {
  ReduceTable table;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!go_on()) return {};
    std::vector<double> seconds;
    transport.Barrier();
    sum(i);  // warms up
    // The sums follow one another as in a step: a rank starts the next one while others still run
    // the last.
    Nanos begin = WallNow();
    for (int time = 0; time < kTimes; ++time) {
      sum(i);
      const Nanos end = WallNow();
      seconds.push_back(ToSeconds(end - begin));
      begin = end;
    }
    table.entries.push_back({sizes[i], Median(seconds)});
  }
  return table;
}

ReduceTable MeasureReductions(Transport& transport, Collective& collective, std::span<float> memory,
                              const std::function<bool()>& go_on) {
  const std::vector<int64_t> sizes = SizesToMeasure(
      static_cast<int64_t>(memory.size_bytes()), SmallBytesOf(collective.name(), transport.size()));
  DT_CHECK(static_cast<size_t>(sizes.back()) <= memory.size_bytes());
  return MeasureSums(transport, sizes, go_on, [&](size_t i) {
    const size_t count = static_cast<size_t>(sizes[i]) / sizeof(float);
    WaitFor(collective, collective.Start(memory.first(count)));
  });
}

}  // namespace dtrain
