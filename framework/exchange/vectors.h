// ActorVectors: the named vectors of one actor, as Blob versions, and the arithmetic that effects
// ask for.
//
// A vector whose blob somebody else holds (a message on its way, the trainer, an evaluation) is left
// to them and written as its next version; an unshared one is changed in place.  A vector without a
// blob counts as zeros.  In a ghost run there are no blobs at all, only sizes.
//
// A plain vector may be sparse (message_channel.h, Piece): what Compress writes is, and what such a message
// leaves by Take.  It stays so until it is written in slices.
#pragma once

#include <string>
#include <vector>

#include "framework/core/state_visitor.h"
#include "framework/device/blob.h"
#include "framework/exchange/message_channel.h"
#include "framework/strategies/actor.h"

namespace dtrain {

class VectorOps;

class ActorVectors {
 public:
  // `pools` outlives the vectors; null in a ghost run.  Gradients get `gradient_tail` more elements
  // behind their range.
  ActorVectors(std::vector<VectorSpec> specs, int gradient_tail, BlobPools* pools);

  const std::vector<VectorSpec>& specs() const { return specs_; }
  // The first vector of this role; kNoVector when there is none.
  VectorId Find(VectorRole role) const;
  const Range& RangeOf(VectorId vector) const { return specs_[vector].range; }

  // The newest version, or the part of it within `range` (empty: all).
  Piece Get(VectorId vector, Range range = {});
  // Memory to write all of the vector anew; somebody's version of it stays theirs.
  float* Overwrite(VectorId vector);
  // The gradient's memory as it is, the tail included: written piece by piece while other pieces
  // are already being summed or applied.
  float* Data(VectorId vector) { return const_cast<float*>(entries_[vector].blob.f32()); }
  void Clear(VectorId vector);
  void Replace(VectorId vector, Piece piece);  // by reference; piece covers the vector
  bool CanReplace(VectorId vector, const Piece& piece) const;

  // --- sparse ones
  bool Empty(VectorId vector) const;  // zeros, and no memory
  bool Sparse(VectorId vector) const { return entries_[vector].entries != kDense; }
  int64_t Entries(VectorId vector) const { return entries_[vector].entries; }  // of a sparse one
  // Gives it a dense blob of the same values, where it is sparse: before it is written in slices.
  void MakeDense(VectorId vector);
  // Memory for a sparse vector of at most so many entries; null in a ghost run.
  Blob NewSparse(int64_t entries);
  // Memory for so many elements; null in a ghost run.
  Blob NewDense(int64_t elements);

  // Memory for changing one slice of the vector: where to read the old values (null: zeros) and
  // where to write the new ones.  The parts of a shared vector that are not written stay as they
  // were.
  struct SliceMemory {
    const float* old_values;
    float* new_values;
  };
  SliceMemory Slice(VectorId vector, Range slice);
  // The memory to write, with the old values in it.
  float* SliceWithValues(VectorId vector, Range slice, VectorOps& ops);

  // Every vector with content, for checkpoints and hashes.  Not gradients: between two steps nobody
  // reads one.
  void Visit(StateVisitor& visitor);

 private:
  struct Entry {
    Blob blob;
    int64_t offset = 0;  // in the blob, of a sparse one's first position
    int64_t entries = kDense;
    int64_t stride = 0;
    Wire wire = Wire::kFp32;     // Piece::wire; once anything is written, that of floats
    bool ghost_content = false;  // where there are blobs, they say whether it is empty

    Blob next;                   // being written
    std::vector<Range> written;  // parts of `next`, ascending and merged where they touch
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
