// Compression: one Compress effect, carried out in slices.
//
// Unit by unit of the compressor's scope: the passes of the selection over the unit's slices, then
// one more in which the chosen entries leave `from` for `to`.  A value is moved or stays, bit by
// bit.  In the first pass every value is looked at for NaN and infinity: a selector may never pick
// one.
//
// A density of 1 or more moves the whole vector, by reference.  A ghost gets as many entries as the
// density asks for.
#pragma once

#include <memory>
#include <vector>

#include "framework/compress/compressor.h"
#include "framework/exchange/hosted_actor.h"
#include "framework/exchange/vector_ops.h"

namespace dtrain {

struct CompressEffect {
  VectorId to, from;
  double density;
};

class Compression {
 public:
  // All outlive it; nobody else touches the two vectors until it is done.
  Compression(const ExchangeSpec& spec, HostedActor& host, VectorOps& ops,
              const CompressEffect& effect);

  // Works through the next slice; false when that was the last.
  bool RunSlice();

  bool finite() const { return finite_; }
  // When it is done.
  CompressionReport report() const;

 private:
  void BeginUnit();
  void EndPass();
  void MoveOut(Range part);
  bool CheckSlice();
  void HandOver();

  const CompressEffect effect_;
  const Compressor* const compressor_;
  ActorVectors& vectors_;
  VectorOps& ops_;
  const Range range_;
  const bool ghost_;
  const bool whole_;  // everything is moved
  SelectionKey key_;

  const float* values_ = nullptr;  // of `from`, before anything is moved; null: zeros
  std::vector<Range> units_;
  size_t unit_ = 0;
  int64_t next_ = 0;  // the arena's element at which the next slice begins
  std::unique_ptr<Selection> selection_;
  bool choosing_ = false;
  bool checked_ = false;  // this unit, for NaN and infinity

  Blob moved_;
  int64_t room_ = 0;   // entries
  int64_t count_ = 0;  // so far
  bool finite_ = true;
};

}  // namespace dtrain
