// Collective: all-reduce.  It sums a range of every rank's vector, in place, on every rank.
//
// `ordered` (the default) computes the canonical sum ((g0 + g1) + g2) + ... in rank order for every
// element, for any buckets, chunks and schedule.  It is a direct reduce-scatter in which the owner
// of a block adds in rank order, then an all-gather, and sends as many bytes as a ring: 2 (P-1)/P n
// per rank.  All others (`ring`, `halving_doubling`, `hierarchical`, `double_trees`, `mpi`) add in
// an order that depends on the position in the vector, so their bits repeat only with the same
// schedule.
//
// Several reductions may be started (gradient buckets, while the backward pass is running).  They
// are carried out one after the other, in the order of Start.  With `overlap`, chunks of the next
// one may begin before the last ones of the former are done.  All ranks start the same reductions
// in the same order.  The caller polls; no call blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/comm/collective_rules.h"
#include "framework/comm/transport.h"
#include "framework/core/registry.h"
#include "framework/core/short_float.h"

namespace dtrain {

// Approximate bytes of arithmetic in one call of Progress, after which the network is polled again.
inline constexpr int64_t kArithmeticPerProgress = 1 << 20;

// Describes a sum whose values are sent in 16 bits.
struct Rounding {
  Wire wire = Wire::kFp32;
  // One float for each element of the vector; the errors of this rank's rounding of sums are added
  // to it.  Null in a ghost run.
  float* errors = nullptr;
};

class Collective {
 public:
  virtual ~Collective() = default;
  virtual std::string name() const = 0;

  // Starts summing data[0, n) over all ranks in place.  Returns a ticket; tickets count from 0.
  // The memory belongs to the collective until Done(ticket) or until the collective is destroyed.
  virtual int64_t Start(std::span<float> data) = 0;

  // Advances everything in flight a little (kArithmeticPerProgress).  Returns true if anything
  // moved.
  virtual bool Progress() = 0;
  virtual bool Done(int64_t ticket) const = 0;
  virtual bool Idle() const = 0;
  // Gives back what belongs to other ranks.  Call it while nothing is in flight, before ranks free their vectors.
  virtual void Rest() {}

  // Counts the payload bytes that this rank has sent and received so far, and messages sent.  `mpi` does not know them;
  // it counts what a bandwidth-optimal algorithm would send.
  struct Traffic {
    int64_t bytes_sent = 0;
    int64_t bytes_received = 0;
    int64_t messages = 0;
    // Counts the bytes of vectors sent to other ranks of the same node, which bytes_sent includes.  0 if nodes are
    // unknown, and for `mpi`.
    int64_t bytes_inside = 0;
    int64_t bytes_lent = 0;  // part of bytes_inside that is read in shared memory (node_window.h)

    void Add(const Traffic& other) {
      bytes_sent += other.bytes_sent;
      bytes_received += other.bytes_received;
      messages += other.messages;
      bytes_inside += other.bytes_inside;
      bytes_lent += other.bytes_lent;
    }
  };
  virtual Traffic traffic() const = 0;

  // Does the same as Start with half the bytes.  The values are rounded to `rounding.wire` already, so sending them in
  // 16 bits loses nothing; they are added in fp32.  A rank that sends a sum rounds it, keeps the rounded sum itself,
  // and adds the rounding error to `rounding.errors`.  Summed over all ranks, the input equals the result plus the
  // errors, except for the rounding of fp32 additions.  All ranks end with the same bits.  Only collectives with a
  // schedule (SumsRounded) can do it, and only if they were made with CollectiveOptions::rounds.
  virtual int64_t StartRounded(std::span<float> data, const Rounding& rounding);
};

struct CollectiveOptions {
  int64_t chunk_bytes = 0;        // pipelining unit; 0: the collective's own rule
  std::vector<int> node_of = {};  // the node of each rank; empty if nodes are unknown
  // Holds the node of each rank for schedules that depend on nodes (CollectiveRules::by_nodes); empty: node_of.
  std::vector<int> plan_nodes = {};
  bool overlap = false;  // reductions may overlap; does not affect the bits
  bool rounds = false;   // StartRounded will be used
};

// `name`: a collective with a schedule ("ordered", "ring", ...) or "mpi" (comm/mpi/, which needs an
// MPI transport).
std::unique_ptr<Collective> MakeCollective(const std::string& name, Transport& transport,
                                           const CollectiveOptions& options = {});
std::vector<std::string> CollectiveNames();

// This is the registry of collectives.  A collective with a schedule registers itself with DTRAIN_COLLECTIVE; `mpi`,
// which has none, adds its maker.
using CollectiveMaker = std::unique_ptr<Collective> (*)(Transport& transport,
                                                        const CollectiveOptions& options);
struct CollectiveEntry {
  std::string help;
  // Rules of the schedule, used to run and to simulate it.  Null: it has no schedule, and `make` is set.
  CollectiveRulesOf rules = nullptr;
  CollectiveMaker make = nullptr;
};
using CollectiveRegistry = Registry<CollectiveEntry>;

// Returns the rules of a collective's schedule; null if it has none.
CollectiveRulesOf ScheduleRulesOf(const std::string& collective);

// True if the order of additions in this collective depends on which ranks share a node.
bool GoesByNodes(const std::string& collective);

// True if the collective has a schedule, which can also run with 16 bits
// (Collective::StartRounded).
bool SumsRounded(const std::string& collective);

// Polls, with Backoff, until the reduction is done.
void WaitFor(Collective& collective, int64_t ticket);

}  // namespace dtrain

// `rules` is a CollectiveRulesOf.
#define DTRAIN_COLLECTIVE(name, rules, help_text)             \
  [[maybe_unused]] static const bool rules##_are_registered = \
      ::dtrain::CollectiveRegistry::Add(name, {help_text, rules, nullptr})
