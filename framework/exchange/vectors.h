// ActorVectors: the named vectors of one actor, as Blob versions, and the arithmetic that effects
// ask for.
//
// A vector whose blob somebody else holds (a letter on its way, the trainer, an evaluation) is left
// to them and written as its next version; an unshared one is changed in place.  A vector without a
// blob counts as zeros.  In a ghost run there are no blobs at all, only sizes.
#pragma once

#include <string>
#include <vector>

#include "framework/device/blob.h"
#include "framework/exchange/mail.h"
#include "framework/strategies/actor.h"

namespace dtrain {

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

  // Memory for changing one slice of the vector: where to read the old values (null: zeros) and
  // where to write the new ones.  The parts of a shared vector that are not written stay as they
  // were.
  struct SliceMemory {
    const float* old_values;
    float* new_values;
  };
  SliceMemory Slice(VectorId vector, Range slice);

  // Every vector with content, for checkpoints and hashes.
  void Visit(StateVisitor& visitor);

 private:
  struct Entry {
    Blob blob;
    Blob next;                   // being written
    std::vector<Range> written;  // parts of `next`, ascending and merged where they touch
  };

  void Commit(VectorId vector);
  Blob NewBlob(VectorId vector);

  std::vector<VectorSpec> specs_;
  std::vector<Entry> entries_;
  int gradient_tail_;
  BlobPools* pools_;
};

}  // namespace dtrain
