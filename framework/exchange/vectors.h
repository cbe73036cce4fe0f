// ActorVectors: the named vectors of one actor, stored as versions in Blobs.
//
// If another holder (a message in flight, the trainer, an evaluation) shares a vector's blob, that
// blob stays unchanged and the next version is written into a new one; an unshared blob is changed
// in place.  A vector without a blob counts as zeros.  A ghost run has no blobs, only sizes.
//
// A plain vector may be sparse (VectorSlice in message_channel.h): Compress writes a sparse vector,
// and Take of a message may store one.  It stays sparse until it is written in slices.
#pragma once

#include <string>
#include <vector>

#include "framework/core/state_visitor.h"
#include "framework/device/blob.h"
#include "framework/exchange/message_channel.h"
#include "framework/exchange/vector_ops.h"
#include "framework/strategies/actor.h"

namespace dtrain {

// Returns the entries of a sparse slice.
inline SparseView ViewOf(const VectorSlice& slice) {
  return {slice.positions(), slice.values(), slice.entries};
}

// Visits `n` floats, which may be in a device's memory.
void VisitArena(StateVisitor& visitor, const std::string& name, Arena values, int64_t n);

class ActorVectors {
 public:
  // `pools` outlives the vectors; null in a ghost run.  A gradient gets `gradient_tail` more
  // elements after its range.
  ActorVectors(std::vector<VectorSpec> specs, int gradient_tail, BlobPools* pools);

  const std::vector<VectorSpec>& specs() const { return specs_; }
  // Returns the first vector with this role; kNoVector if there is none.
  VectorId Find(VectorRole role) const;
  const Range& RangeOf(VectorId vector) const { return specs_[vector].range; }

  // Returns the newest version, or the part of it within `range` (empty: all).
  VectorSlice Get(VectorId vector, Range range = {});
  // Returns memory to overwrite the whole vector.  A version that is shared does not change.
  float* Overwrite(VectorId vector);
  // Returns the gradient's memory, the tail included.  Some slices may be written while others are
  // already being summed or applied.
  float* Data(VectorId vector) { return const_cast<float*>(entries_[vector].blob.f32()); }
  // Returns a view of memory that these functions have returned.
  Arena ArenaAt(float* memory) const {
    return {memory, pools_ == nullptr ? nullptr : pools_->device().queue.get()};
  }
  void Clear(VectorId vector);
  void Replace(VectorId vector, VectorSlice slice);  // by reference; `slice` covers the vector
  bool CanReplace(VectorId vector, const VectorSlice& slice) const;

  // --- sparse vectors
  bool Empty(VectorId vector) const;  // all zeros, without memory
  bool Sparse(VectorId vector) const { return entries_[vector].entries != kDense; }
  int64_t Entries(VectorId vector) const { return entries_[vector].entries; }  // of a sparse one
  // Makes a sparse vector dense, with the same values.  Needed before it is written in slices.
  void MakeDense(VectorId vector);
  // Returns memory for a sparse vector of at most `entries` entries; null in a ghost run.
  Blob NewSparse(int64_t entries);
  // Returns memory for `elements` elements; null in a ghost run.
  Blob NewDense(int64_t elements);

  // Memory to change one slice of a vector: read the old values (null: zeros) and write the new
  // ones.  Slices of a shared vector that are not written keep their values.
  struct SliceMemory {
    const float* old_values;
    float* new_values;
  };
  SliceMemory Slice(VectorId vector, Range slice);
  // Returns memory to write, with the old values in it.
  float* SliceWithValues(VectorId vector, Range slice, VectorOps& ops);

  // Visits every vector with content, for checkpoints and hashes.  Gradients are left out, since
  // they are not read between two steps.
  void Visit(StateVisitor& visitor);

 private:
  struct Entry {
    Blob blob;
    int64_t offset = 0;  // index in the blob of a sparse vector's first position
    int64_t entries = kDense;
    int64_t stride = 0;
    Wire wire = Wire::kFp32;     // VectorSlice::wire; kFp32 once the vector was written
    bool ghost_content = false;  // in a ghost run: the vector is not empty

    Blob next;                   // the version being written
    std::vector<Range> written;  // written parts of `next`; touching ones are merged
  };

  void VisitDense(VectorId vector, StateVisitor& visitor);
  void VisitSparse(VectorId vector, StateVisitor& visitor);
  void Commit(VectorId vector);
  Blob NewBlob(VectorId vector);

  std::vector<VectorSpec> specs_;
  std::vector<Entry> entries_;
  int gradient_tail_;
  BlobPools* pools_;
};

}  // namespace dtrain
