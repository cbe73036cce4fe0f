// Reports of workers about their steps, and the counts of protocols.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

#include "framework/core/bytes.h"
#include "framework/core/time.h"

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
};

// Holds the outcome of a step.  With a synchronous strategy it is that of all workers together,
// equal on every rank; else it is that of this worker alone.
struct StepOutcome {
  int64_t samples = 0;
  double loss_sum = 0;
  bool stop = false;   // some rank was asked to stop
  bool finite = true;  // no NaN or infinity in the loss or in an updated weight
};

inline StepOutcome OutcomeOf(const StepReport& report) {
  return {report.samples, report.loss_sum, report.stop, true};
}

// Holds totals of compression.  The density is entries_sent / entries.
struct CompressionReport {
  int64_t entries_sent = 0;
  int64_t entries = 0;
  int64_t bytes = 0;  // bytes that all passes over vectors read; simulated time depends on it
  Nanos time = 0;     // wall time

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

// Counts of the actors, for summary.json.
struct ProtocolReport {
  std::vector<int64_t> staleness;  // [s]: number of gradients of staleness s
  int64_t clock_lead_max = -1;     // -1: the strategy does not admit steps by clocks
  // Number of vectors of the model's size: gradients or sums of them (up), weights (down).
  int64_t up_transfers = 0, down_transfers = 0;
  int64_t rounds = 0;      // rounds of pulls that made an update
  int64_t dropped = 0;     // gradients thrown away because they were too old
  int64_t lost = 0;        // submitted gradients that were lost by a death
  int64_t ignored = 0;     // messages of nodes that had been given up
  int64_t merged = 0;      // gradients summed at the mean version of several, not at their own
  int64_t slot_waits = 0;  // steps that waited until the node had taken an earlier gradient
  int64_t exchanges = 0;   // exchanges between groups
  int64_t regroups = 0;
  int64_t group = -1;                 // the worker's group
  std::vector<int64_t> idle_servers;  // group servers without workers
  DTRAIN_FIELDS(staleness, clock_lead_max, up_transfers, down_transfers, rounds, dropped, lost,
                ignored, merged, slot_waits, exchanges, regroups, group, idle_servers)

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
    AddCounts(other, 1);
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
    since.AddCounts(before, -1);
    while (!since.staleness.empty() && since.staleness.back() == 0) since.staleness.pop_back();
    return since;
  }

  // These are the members that are summed, except the staleness.
  using Count = int64_t ProtocolReport::*;
  static const std::array<Count, 10>& Counts() {
    static constexpr std::array<Count, 10> kCounts = {
        &ProtocolReport::up_transfers, &ProtocolReport::down_transfers, &ProtocolReport::rounds,
        &ProtocolReport::dropped,      &ProtocolReport::lost,           &ProtocolReport::ignored,
        &ProtocolReport::merged,       &ProtocolReport::slot_waits,     &ProtocolReport::exchanges,
        &ProtocolReport::regroups};
    return kCounts;
  }

 private:
  void AddCounts(const ProtocolReport& other, int64_t times) {
    for (const Count count : Counts()) this->*count += times * (other.*count);
  }
};

}  // namespace dtrain
