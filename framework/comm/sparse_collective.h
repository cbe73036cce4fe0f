// SparseCollective: sparse all-reduce.  It sums the entries that all ranks have selected.
//
//   gather   every rank gets every rank's selection: 2 k (P-1) words received per rank
//   gtopk    the k largest sums, by a binomial tree: up to 2 k log2 P words received, as many sent
//   oktopk   the sums above a common threshold, each made by the owner of its region: below
//            6 k (P-1)/P words
//
// (Shi et al., "A distributed synchronous SGD algorithm with global top-k sparsification", ICDCS 2019;
// Li and Hoefler, "Near-optimal sparse allreduce for distributed deep learning", PPoPP 2022.)
//
// Sums may be started while others are in flight.  They are carried out one after the other, in the
// order of Start, which is the same on all ranks.  The caller polls; no call blocks.  A transport
// has one stream of messages for them (Tag::kSparse), so two objects over one transport must not be
// in use at the same time.  Dense collectives have streams of their own and may be in flight
// meanwhile.
//
// No selected entry is lost: summed over all ranks, the input equals the sum plus the returned
// entries, except for the rounding of additions.
//
// Ghosts are sizes without numbers: spans with null data and a size.  A simulated collective uses
// only the sizes and returns such spans; the collectives of this folder need the numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/comm/collective.h"
#include "framework/comm/sparse_schedule.h"
#include "framework/core/registry.h"
#include "framework/core/state_visitor.h"

namespace dtrain {

// Entries of a vector of n floats.  Positions are relative to the vector's begin, ascending and
// distinct; there are as many values.
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

  // Starts the sum of the entries that all ranks selected from unit `unit`, which has n floats (n <
  // 2^31).  Units are buckets, numbered from 0.  They are the same on all ranks and in every step,
  // and have a state that is kept from sum to sum; a unit with another n than before begins with a
  // new state.  `k`: the number of entries asked for, the same on all ranks; a selection may have
  // more or fewer, or none.  Returns a ticket; tickets count from 0.  The memory of `mine` belongs
  // to the collective until Release(ticket).
  virtual int64_t Start(int unit, int64_t n, int64_t k, SparseEntries mine) = 0;

  // Advances the sum in flight a little (at most about 1 MB of arithmetic).  Returns true if
  // anything moved.
  virtual bool Progress() = 0;
  virtual bool Done(int64_t ticket) const = 0;
  virtual bool Idle() const = 0;  // true if all started sums are done

  struct Sum {
    // The sum is made by adding the parts to zeros, in this order; the bits are the same on all
    // ranks.  gather: a part for each rank, in rank order.  gtopk: one part.  oktopk: a part for
    // each rank, ascending and without common positions.
    std::vector<SparseEntries> parts;
    // Entries to be added to this rank's residual.  gather: none.  oktopk: the entries of `mine`
    // whose positions are not in the sum, unchanged.  gtopk: the entries that this rank dropped,
    // which may be its own, those of ranks below it in the tree, or sums of several, at any
    // positions.
    SparseEntries returned;
  };
  // Returns the sum; valid when Done, until Release.
  virtual const Sum& Of(int64_t ticket) const = 0;
  // Releases a sum, in any order.  The memory is used for later sums.
  virtual void Release(int64_t ticket) = 0;

  virtual Collective::Traffic traffic() const = 0;
  // Returns the part of the bytes received that is for oktopk's exact thresholds.  They are
  // computed once in many calls and are not part of the method's published volume.
  virtual int64_t periodic_bytes_received() const { return 0; }

  // Visits the state that is kept from sum to sum: thresholds, regions, counts of calls.  Call it
  // only when Idle.  The state is the same on all ranks; loading it with another number of ranks
  // throws CheckpointError.
  virtual void Visit(StateVisitor&) {}
};

// `name`: "gather", "gtopk" or "oktopk".  The option chunk_bytes is ignored.
std::unique_ptr<SparseCollective> MakeSparseCollective(const std::string& name,
                                                       Transport& transport,
                                                       const CollectiveOptions& options = {});
std::vector<std::string> SparseCollectiveNames();

// This is the registry of sparse collectives.  Each registers itself with DTRAIN_SPARSE_COLLECTIVE.
using SparseCollectiveMaker =
    std::unique_ptr<SparseCollective> (*)(Transport& transport, const CollectiveOptions& options);
struct SparseCollectiveEntry {
  SparseCollectiveMaker make;
  std::vector<SparsePhase> (*phases)(int ranks);  // of a call, one after the other
  std::string help;
};
using SparseCollectiveRegistry = Registry<SparseCollectiveEntry>;

// Polls, with Backoff, until the sum is done.
void WaitFor(SparseCollective& collective, int64_t ticket);

}  // namespace dtrain

// `make` is a SparseCollectiveMaker, `phases` as in SparseCollectiveEntry.
#define DTRAIN_SPARSE_COLLECTIVE(name, make, phases, help_text)            \
  [[maybe_unused]] static const bool make##_sparse_collective_registered = \
      ::dtrain::SparseCollectiveRegistry::Add(name, {make, phases, help_text})
