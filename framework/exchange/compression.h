// Compression: a selection, carried out in slices: of a Compress effect, or of what a Reduce sends.
//
// Unit by unit of the compressor's scope: the passes of the selection over the unit's slices, then
// one more in which the chosen entries leave the vector.  A value is moved or stays, bit by
// bit.  In the first pass every value is looked at for NaN and infinity: a selector may never pick
// one.
//
// A cast rounds every value: what is sent is the rounded ones, what stays is the errors.
//
// Where the residual is in a device's memory (device_residual.h) a slice is a unit, of which only the
// chosen entries come to the machine's.
//
// A density of 1 or more moves the whole vector, by reference.  (A cast's is 1, and it moves none.)  A
// ghost gets as many entries as the density asks for.
#pragma once

#include <memory>
#include <vector>

#include "framework/compress/compressor.h"
#include "framework/exchange/hosted_actor.h"
#include "framework/exchange/vector_ops.h"

namespace dtrain {

// What is selected from: a range of a vector of the actor.
struct CompressedRange {
  VectorId from = kNoVector;
  Range range;
  double density = 1;
  int64_t origin = 0;           // the arena's element that positions are counted from
  VectorId masked = kNoVector;  // a vector that becomes 0 where an entry is taken
  // Of a cast: where the rounded values go, in the place of a vector of their own; the range's first.
  float* rounded = nullptr;
};

class Compression {
 public:
  // All outlive it; nobody else touches the range until it is done.
  Compression(const ExchangeSpec& spec, HostedActor& host, VectorOps& ops,
              const CompressedRange& what);

  // Works through the next slice; false when that was the last.
  bool RunSlice();

  bool finite() const { return finite_; }
  // When it is done.
  CompressionReport report() const;
  Piece Take();  // what has left the vector; not where it went to CompressedRange::rounded

 private:
  void BeginUnit();
  void EndPass();
  void MoveOut(Range part);
  void SelectThere();
  void EndUnit();
  bool CheckSlice();
  bool RoundSlice();

  const CompressedRange what_;
  const Compressor* const compressor_;
  HostedActor& host_;
  ActorVectors& vectors_;
  VectorOps& ops_;
  const Range range_;
  const bool ghost_;
  const Wire wire_;   // of a cast
  const bool whole_;  // everything is moved
  SelectionKey key_;

  const float* values_ = nullptr;  // of `from`, before anything is moved; null: zeros
  DeviceResidual* const there_;    // in whose memory `from` is; null: in the machine's
  std::vector<Range> units_;
  size_t unit_ = 0;
  int64_t next_ = 0;  // the arena's element at which the next slice begins
  std::unique_ptr<Selection> selection_;
  GradientStudy* const study_;  // of this; null: nobody looks on
  bool choosing_ = false;
  bool checked_ = false;  // this unit, for NaN and infinity

  Blob moved_;
  std::vector<float> dropped_;  // scratch: what was where entries are masked
  int64_t room_ = 0;            // entries
  int64_t count_ = 0;           // so far
  bool finite_ = true;
};

}  // namespace dtrain
