// SparseCollective: sums selections of entries of all ranks.
//
//   gather   everybody gets everybody's selection: 2 k (P-1) words received a rank
//   gtopk    the k largest sums, by a binomial tree: up to 2 k log2 P words, and as many sent
//   oktopk   the sums above a common threshold, each made by the owner of its region: below 6 k (P-1)/P words
//
// (Shi et al., "A distributed synchronous SGD algorithm with global top-k sparsification", ICDCS 2019;
// Li and Hoefler, "Near-optimal sparse allreduce for distributed deep learning", PPoPP 2022.)
//
// Sums may be started while others are in flight; they are carried out one after the other, in the
// order of Start, which is the same at all ranks.  The caller polls; nothing blocks.  A transport has
// one stream of messages for them (Tag::kSparse), so two objects over one transport are used in turn;
// dense collectives have streams of their own and may be in flight at the same time.
//
// Nothing that was selected is lost: over all ranks, what was given = the sum + what was returned, but
// for the rounding of the additions that were made.
//
// Ghosts (sizes without numbers): spans with null data and a size.  A simulated collective looks at the
// sizes only and answers with such spans; the ones of this folder need the numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/comm/collective.h"
#include "framework/core/registry.h"
#include "framework/core/state_visitor.h"

namespace dtrain {

// Entries of a vector of n floats: positions ascending, each once, counted from the vector's begin; as
// many values.
struct SparseEntries {
  std::span<const int32_t> positions;
  std::span<const float> values;

  int64_t size() const { return static_cast<int64_t>(positions.size()); }
  bool empty() const { return positions.empty(); }
  SparseEntries Part(int64_t begin, int64_t end) const {
    const auto first = static_cast<size_t>(begin);
    const auto count = static_cast<size_t>(end - begin);
    return {positions.subspan(first, count), values.subspan(first, count)};
  }
};

class SparseCollective {
 public:
  virtual ~SparseCollective() = default;
  virtual std::string name() const = 0;

  // Begins summing this rank's selection out of unit `unit`, which has n floats (n < 2^31).  Units are
  // buckets, counted from 0: the same ones at all ranks and from step to step, with the same n (with another one it begins anew); state
  // that lives longer than a sum is kept for each.  `k`: how many entries were asked for, the same at
  // all ranks; the selection may have more or fewer, or none.  Returns a ticket, counting from 0.
  // What `mine` points to is the collective's until Release(ticket).
  virtual int64_t Start(int unit, int64_t n, int64_t k, SparseEntries mine) = 0;

  // Moves the sum in flight along a little (at most about 1 MB of arithmetic); true when something
  // moved.
  virtual bool Progress() = 0;
  virtual bool Done(int64_t ticket) const = 0;
  virtual bool Idle() const = 0;  // all that were started are done

  struct Sum {
    // Added one after the other to zeros, in this order, they make the sum; the same bits at all
    // ranks.  gather: a part for each rank, in rank order.  gtopk: one part.  oktopk: a part for each
    // rank, ascending and without common positions.
    std::vector<SparseEntries> parts;
    // To be added to this rank's residual.  gather: nothing.  oktopk: those of `mine` whose positions
    // are not in the sum, as they were.  gtopk: what this rank dropped on the way, be it its own, that
    // of ranks behind it in the tree, or the sum of several; any positions.
    SparseEntries returned;
  };
  // Once done, until Release.
  virtual const Sum& Of(int64_t ticket) const = 0;
  // In any order; the memory serves later sums.
  virtual void Release(int64_t ticket) = 0;

  virtual Collective::Traffic traffic() const = 0;
  // Of the bytes received, those for what is renewed once in many calls and is no part of the
  // method's volume: oktopk's exact thresholds.
  virtual int64_t periodic_bytes_received() const { return 0; }

  // What lives from sum to sum: thresholds, regions, counts of calls.  When Idle.  The same at all
  // ranks; of use to as many ranks only (CheckpointError).
  virtual void Visit(StateVisitor&) {}
};

// name: "gather", "gtopk", "oktopk".  Of the options, chunk_bytes means nothing here.
std::unique_ptr<SparseCollective> MakeSparseCollective(const std::string& name,
                                                       Transport& transport,
                                                       const CollectiveOptions& options = {});
std::vector<std::string> SparseCollectiveNames();

// Which there are; each registers itself by a line of DTRAIN_SPARSE_COLLECTIVE.
using SparseCollectiveMaker =
    std::unique_ptr<SparseCollective> (*)(Transport& transport, const CollectiveOptions& options);
struct SparseCollectiveEntry {
  SparseCollectiveMaker make;
  std::string help;
};
using SparseCollectiveRegistry = Registry<SparseCollectiveEntry>;

// Polls and backs off until the sum is done.
void WaitFor(SparseCollective& collective, int64_t ticket);

}  // namespace dtrain

// `make` is a SparseCollectiveMaker.
#define DTRAIN_SPARSE_COLLECTIVE(name, make, help_text)                    \
  [[maybe_unused]] static const bool make##_sparse_collective_registered = \
      ::dtrain::SparseCollectiveRegistry::Add(name, {make, help_text})
