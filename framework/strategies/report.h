// Reports of workers about their steps, and the counts of protocols.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <vector>

#include "framework/core/bytes.h"
#include "framework/core/time.h"
#include "framework/strategies/counts.h"

namespace dtrain {

// A worker's report about its step.
struct StepReport {
  int64_t samples = 0;
  double loss_sum = 0;
  bool stop = false;           // this rank was asked to stop
  int64_t global_samples = 0;  // samples of the global batch; 0: the worker's batch is its own
  // Terms of the loss (data/dataset.h) in the worker's share and in the global batch.  The gradient
  // was divided by the latter.  0: terms are samples.
  int64_t terms = 0;
  int64_t global_terms = 0;
  Nanos compute = 0;  // forward and backward, pacing included
  // The step's work is in Exchange::steps(), so its loss is not known yet, and it may end before that.
  bool lags = false;
  // The run of a lockstep strategy pauses after this step, so all workers have to know its outcome.
  bool boundary = false;

  // Returns this worker's share of the global batch; 1 where the batch is its own.
  double share() const {
    const bool by_terms = global_terms > 0;
    const int64_t all = by_terms ? global_terms : global_samples;
    if (all == 0) return 1;
    return static_cast<double>(by_terms ? terms : samples) / static_cast<double>(all);
  }
};

// Holds the outcome of a step.  With a lockstep strategy (StrategyTraits) it is that of all workers
// together, equal on every rank, unless `alone` is set.  Else it is that of this worker.
struct StepOutcome {
  int64_t samples = 0;
  double loss_sum = 0;
  bool stop = false;   // some rank was asked to stop
  bool finite = true;  // no NaN or infinity in the loss or in an updated weight
  // The workers have not exchanged anything in this step of a lockstep strategy: `samples` are those
  // of all, but the other members are this worker's, so no boundary may depend on them.
  bool alone = false;
};

inline StepOutcome OutcomeOf(const StepReport& report) {
  return {report.samples, report.loss_sum, report.stop, true};
}

// Holds totals of compression.  The density is entries_sent / entries.
struct CompressionReport {
  int64_t entries_sent = 0;
  int64_t entries = 0;
  int64_t bytes = 0;  // bytes that all passes over vectors read; simulated time depends on it
  Nanos time = 0;     // wall time; in virtual time what measured costs charge (CompressCost)

  double density() const {
    return static_cast<double>(entries_sent) / static_cast<double>(std::max<int64_t>(entries, 1));
  }
  void Add(const CompressionReport& other) {
    entries_sent += other.entries_sent;
    entries += other.entries;
    bytes += other.bytes;
    time += other.time;
  }
};

// Holds what the actors report for summary.json: what any strategy may have, and the counts that theirs declares.
struct ProtocolReport {
  std::vector<int64_t> staleness;  // [s]: number of gradients of staleness s
  int64_t clock_lead_max = -1;     // -1: the strategy does not admit steps by clocks
  StrategyCounts counts = {};
  int64_t group = -1;                      // the worker's group; -1: there are none
  std::vector<int64_t> idle_servers = {};  // servers without workers
  DTRAIN_FIELDS(staleness, clock_lead_max, counts, group, idle_servers)

  void Count(std::string_view name, int64_t n) { counts.Count(name, n); }
  int64_t Total(std::string_view name) const { return counts.Total(name); }
  void AddStaleness(int64_t value, int64_t count = 1) {
    if (static_cast<int64_t>(staleness.size()) <= value) staleness.resize(value + 1);
    staleness[value] += count;
  }
  int64_t gradients() const {
    return std::accumulate(staleness.begin(), staleness.end(), int64_t{0});
  }
  double staleness_mean() const {
    double sum = 0;
    for (size_t s = 0; s < staleness.size(); ++s) {
      sum += static_cast<double>(s) * static_cast<double>(staleness[s]);
    }
    return sum / static_cast<double>(std::max<int64_t>(gradients(), 1));
  }
  void Add(const ProtocolReport& other) {
    for (size_t s = 0; s < other.staleness.size(); ++s) {
      if (other.staleness[s] != 0) AddStaleness(static_cast<int64_t>(s), other.staleness[s]);
    }
    clock_lead_max = std::max(clock_lead_max, other.clock_lead_max);
    counts.Add(other.counts);
    idle_servers.insert(idle_servers.end(), other.idle_servers.begin(), other.idle_servers.end());
  }
  // Returns the counts since `before`; clock_lead_max stays the largest of the whole run.  A count
  // may be negative, since another rank may count now what this one had counted before.
  ProtocolReport Since(const ProtocolReport& before) const {
    ProtocolReport since = *this;
    for (size_t s = 0; s < before.staleness.size(); ++s) {
      if (before.staleness[s] != 0) {
        since.AddStaleness(static_cast<int64_t>(s), -before.staleness[s]);
      }
    }
    since.counts.Add(before.counts, -1);
    while (!since.staleness.empty() && since.staleness.back() == 0) since.staleness.pop_back();
    return since;
  }
};

}  // namespace dtrain
