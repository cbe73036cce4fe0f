#include "tests/faults/fault_schedule.h"

#include <fmt/format.h>

#include <algorithm>

namespace dtrain {
namespace {

using Kind = Fault::Kind;

constexpr int64_t kMostFaults = 8;

Fault DrawFault(Draws& draws, const Possible& possible) {
  std::vector<Kind> kinds{Kind::kStop, Kind::kSlow};
  if (possible.envelopes) kinds.insert(kinds.end(), 3, Kind::kDelay);
  if (possible.nan) kinds.push_back(Kind::kNaN);
  if (possible.deaths) kinds.push_back(Kind::kDeath);
  Fault fault{kinds[draws.Below(static_cast<int64_t>(kinds.size()))]};
  const bool of_rank = fault.kind == Kind::kStop || fault.kind == Kind::kDelay;
  fault.who = draws.Below(of_rank ? possible.ranks : possible.workers);
  fault.number = draws.Below(possible.steps);
  fault.at = draws.Real(0, possible.seconds);
  // Lasts from a moment to a large part of the run.
  fault.size =
      draws.Coin() ? draws.Real(0, 0.02) * possible.seconds : draws.Real(0, 0.5) * possible.seconds;
  if (fault.kind == Kind::kSlow) {
    fault.size = draws.Real(1, 20);
    fault.count = draws.Between(1, possible.steps);
  }
  if (fault.kind == Kind::kDelay) {
    fault.to = (fault.who + draws.Between(1, possible.ranks - 1)) % possible.ranks;
    fault.number = draws.Below(4 * possible.steps);
  }
  if (fault.kind == Kind::kDeath) ++fault.number;
  return fault;
}

// Returns the schedule without the faults [begin, end).
FaultSchedule Without(const FaultSchedule& schedule, size_t begin, size_t end) {
  FaultSchedule rest(schedule.begin(), schedule.begin() + static_cast<ptrdiff_t>(begin));
  rest.insert(rest.end(), schedule.begin() + static_cast<ptrdiff_t>(end), schedule.end());
  return rest;
}

// Returns simpler variants of a fault, the simplest first.
std::vector<Fault> Simpler(const Fault& fault) {
  std::vector<Fault> simpler;
  const auto with = [&](auto Fault::*member, auto value) {
    if (fault.*member == value) return;
    simpler.push_back(fault);
    simpler.back().*member = value;
  };
  const int64_t first = fault.kind == Kind::kDeath ? 1 : 0;
  with(&Fault::number, first);
  with(&Fault::number, std::max(fault.number / 2, first));
  with(&Fault::number, std::max(fault.number - 1, first));
  with(&Fault::at, 0.0);
  if (fault.kind == Kind::kSlow) with(&Fault::count, std::max<int64_t>(fault.count / 2, 1));
  // Rounds seconds; a factor is at least 1.
  if (fault.size > 1e-3)
    with(&Fault::size, fault.size / 2 < 1 && fault.kind == Kind::kSlow ? 1 : fault.size / 2);
  return simpler;
}

// Leaves out parts of the schedule, the larger ones first.
void LeaveOut(FaultSchedule& schedule, const std::function<bool(const FaultSchedule&)>& fails) {
  for (size_t length = schedule.size(); length > 0;) {
    bool shorter = false;
    for (size_t begin = 0; begin < schedule.size();) {
      const FaultSchedule rest =
          Without(schedule, begin, std::min(begin + length, schedule.size()));
      if (fails(rest)) {
        schedule = rest;
        shorter = true;
      } else {
        begin += length;
      }
    }
    if (!shorter || length > 1) length /= 2;
  }
}

// Returns true if it made a fault simpler.
bool Simplify(FaultSchedule& schedule, const std::function<bool(const FaultSchedule&)>& fails) {
  bool any = false;
  for (size_t i = 0; i < schedule.size();) {
    const Fault before = schedule[i];
    const std::vector<Fault> simpler = Simpler(before);
    const bool found = std::ranges::any_of(simpler, [&](const Fault& fault) {
      schedule[i] = fault;
      return fails(schedule);
    });
    any = any || found;
    if (found) continue;
    schedule[i++] = before;
  }
  return any;
}

}  // namespace

std::string Fault::Describe() const {
  switch (kind) {
    case Kind::kStop:
      return fmt::format("rank {} does nothing for {:g} s from {:g} s", who, size, at);
    case Kind::kSlow:
      return fmt::format("worker {} takes {:g} times as long for {} steps from step {}", who, size,
                         count, number);
    case Kind::kDelay:
      return fmt::format("message {} from rank {} to rank {} arrives {:g} s later", number, who, to,
                         size);
    case Kind::kNaN:
      return fmt::format("a NaN in the gradient of step {} of worker {}", number, who);
    case Kind::kDeath:
      return fmt::format("worker {} dies behind {} steps", who, number);
  }
  return "";
}

std::string Describe(const FaultSchedule& schedule) {
  std::string lines;
  for (const Fault& fault : schedule) lines += "\n  " + fault.Describe();
  return lines;
}

FaultSchedule DrawSchedule(Draws& draws, const Possible& possible) {
  FaultSchedule schedule;
  for (int64_t i = draws.Between(1, kMostFaults); i > 0; --i)
    schedule.push_back(DrawFault(draws, possible));
  return schedule;
}

void Apply(const FaultSchedule& schedule, std::vector<std::vector<double>> steps,
           SimulationSetup& setup) {
  for (const Fault& fault : schedule) {
    const Nanos size = FromSeconds(fault.size);
    switch (fault.kind) {
      case Kind::kStop:
        setup.faults.stops.push_back({static_cast<Rank>(fault.who), FromSeconds(fault.at), size});
        break;
      case Kind::kDelay:
        setup.faults.delays.push_back(
            {static_cast<Rank>(fault.who), static_cast<Rank>(fault.to), fault.number, size});
        break;
      case Kind::kSlow: {
        std::vector<double>& of_worker = steps[static_cast<size_t>(fault.who)];
        for (int64_t step = fault.number; step < fault.number + fault.count; ++step) {
          of_worker[static_cast<size_t>(step) % of_worker.size()] *= fault.size;
        }
        break;
      }
      case Kind::kDeath: {
        Death death;
        death.worker = fault.who;
        death.at_step = fault.number;
        setup.cluster.deaths.push_back(death);
        const bool defined =
            CheckDeaths(setup.cluster.deaths, setup.exchange.placement(), setup.cluster.per_node())
                .empty();
        if (!defined) setup.cluster.deaths.pop_back();
        break;
      }
      case Kind::kNaN:
        break;
    }
  }
  setup.exchange.actors.may_fail = !setup.cluster.deaths.empty();
  setup.trace = std::move(steps);
}

FaultSchedule Shrink(FaultSchedule schedule,
                     const std::function<bool(const FaultSchedule&)>& fails) {
  // Repeats after a fault became simpler: another one may be unnecessary now.
  for (bool simpler = true; simpler;) {
    LeaveOut(schedule, fails);
    simpler = Simplify(schedule, fails);
  }
  return schedule;
}

}  // namespace dtrain
