// Collective: sums a range of every rank's vector, in place, on every rank.
//
// `ordered` (the default) computes the canonical sum ((g0 + g1) + g2) + ... in rank order for every
// element, whatever the buckets, chunks or schedule, by a direct reduce-scatter in which the owner
// of a block adds in rank order, then an all-gather: a ring's bytes, 2 (P-1)/P n per rank.  All
// others (`ring`, `halving_doubling`, `hierarchical`, `double_trees`, `mpi`) add in an order that
// goes by the place in the vector: they repeat under the same schedule only.
//
// Several reductions may be started (gradient buckets leave while the backward pass goes on); they
// are carried out one after the other, in the order of Start, unless `overlap` lets the chunks of
// the next begin before the last ones of the former are through.  All ranks start the same
// reductions in the same order.  The caller polls; nothing blocks.
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

// Bytes of arithmetic in one Progress, about: then the network is looked at again.
inline constexpr int64_t kArithmeticPerProgress = 1 << 20;

// How the values of a sum travel in 16 bits.
struct Rounding {
  Wire wire = Wire::kFp32;
  // Of the vector's floats: gets, added, what this rank's rounding of sums has left.  Null where there are
  // no numbers.
  float* errors = nullptr;
};

class Collective {
 public:
  virtual ~Collective() = default;
  virtual std::string name() const = 0;

  // Begins summing data[0, n) over all ranks in place.  Returns a ticket, counting from 0.  The
  // memory is the collective's until Done(ticket) or the collective's own end.
  virtual int64_t Start(std::span<float> data) = 0;

  // Moves everything in flight along a little (kArithmeticPerProgress); true when something moved.
  virtual bool Progress() = 0;
  virtual bool Done(int64_t ticket) const = 0;
  virtual bool Idle() const = 0;

  // Bytes this rank has sent and received for payload so far, and messages sent.  `mpi` cannot
  // know; it counts what a bandwidth-optimal algorithm sends.
  struct Traffic {
    int64_t bytes_sent = 0;
    int64_t bytes_received = 0;
    int64_t messages = 0;
    // Of those sent, vectors to another rank of the same node; where nodes are known.  `mpi` cannot
    // tell.
    int64_t bytes_inside = 0;
    int64_t bytes_lent = 0;  // of those, read where they are by the other (node_window.h)

    void Add(const Traffic& other) {
      bytes_sent += other.bytes_sent;
      bytes_received += other.bytes_received;
      messages += other.messages;
      bytes_inside += other.bytes_inside;
      bytes_lent += other.bytes_lent;
    }
  };
  virtual Traffic traffic() const = 0;

  // As Start, with half the bytes, of values that are `rounding.wire`'s already: so nothing is lost on the
  // way to those who add, in fp32.  Who sends a sum on rounds it, keeps the rounded sum itself, and
  // adds what is left to its errors: over all ranks, what was given = the sum + the errors, but for the
  // rounding of fp32 additions.  All ranks end with the same bits.  For schedules only, made with
  // CollectiveOptions::rounds.
  virtual int64_t StartRounded(std::span<float> data, const Rounding& rounding);
};

struct CollectiveOptions {
  int64_t chunk_bytes = 0;  // pipelining unit; 0: by rule (collective's own, from size and world)
  std::vector<int> node_of = {};  // of each rank; empty where nodes are not known
  // The nodes by which a schedule goes that goes by nodes (CollectiveRules::by_nodes); empty: node_of.
  std::vector<int> plan_nodes = {};
  bool overlap = false;  // of reductions; never decides bits
  bool rounds = false;   // StartRounded is wanted as well
};

// name: a schedule's ("ordered", "ring", ...) or "mpi" (comm/mpi/, needs an MPI transport).
std::unique_ptr<Collective> MakeCollective(const std::string& name, Transport& transport,
                                           const CollectiveOptions& options = {});
std::vector<std::string> CollectiveNames();

// Which collectives there are; each registers itself by a line of DTRAIN_COLLECTIVE or, where it is no
// schedule of ours, by its maker.
using CollectiveMaker = std::unique_ptr<Collective> (*)(Transport& transport,
                                                        const CollectiveOptions& options);
struct CollectiveEntry {
  std::string help;
  CollectiveRulesOf rules =
      nullptr;                     // what is run and charged; null: it has no schedule of ours, but
  CollectiveMaker make = nullptr;  // this
};
using CollectiveRegistry = Registry<CollectiveEntry>;

// Whether the sums of this collective depend on which ranks share a node.
bool GoesByNodes(const std::string& collective);

// Whether it is a schedule, which can be carried out with 16 bits (Collective::StartRounded).
bool SumsRounded(const std::string& collective);

// Polls and backs off until the reduction is done.
void WaitFor(Collective& collective, int64_t ticket);

}  // namespace dtrain

// `rules` is a CollectiveRulesOf.
#define DTRAIN_COLLECTIVE(name, rules, help_text)             \
  [[maybe_unused]] static const bool rules##_are_registered = \
      ::dtrain::CollectiveRegistry::Add(name, {help_text, rules, nullptr})
