#include "framework/strategies/counts.h"

#include <algorithm>

#include "framework/core/check.h"

namespace dtrain {

StrategyCounts::StrategyCounts(const std::vector<StrategyCounter>& declared) {
  for (const StrategyCounter& counter : declared) {
    DT_CHECK(Find(counter.name) == nullptr) << "two counters have the name " << counter.name;
    all_.push_back({counter.name, 0});
  }
}

StrategyCounts::One* StrategyCounts::Find(std::string_view name) {
  const auto it = std::ranges::find(all_, name, &One::name);
  return it == all_.end() ? nullptr : &*it;
}

void StrategyCounts::Count(std::string_view name, int64_t n) {
  One* const one = Find(name);
  DT_CHECK(one != nullptr) << "the strategy declares no counter '" << name << "'";
  one->value += n;
}

void StrategyCounts::Add(const StrategyCounts& other, int64_t times) {
  for (const One& of_other : other.all_) {
    if (One* const one = Find(of_other.name)) {
      one->value += times * of_other.value;
    } else {
      all_.push_back({of_other.name, times * of_other.value});
    }
  }
}

int64_t StrategyCounts::Total(std::string_view name) const {
  const auto it = std::ranges::find(all_, name, &One::name);
  return it == all_.end() ? 0 : it->value;
}

bool StrategyCounts::Any() const {
  return std::ranges::any_of(all_, [](const One& one) { return one.value != 0; });
}

}  // namespace dtrain
