// Compression: selects the entries of a vector that are sent, slice by slice, for a Compress or a
// Reduce effect.
//
// It works through the units of the compressor's scope one after the other.  The selection makes
// its passes over the slices of a unit, then one more pass moves the chosen entries out of the
// vector.  Each value is either moved or stays, with all its bits.  The first pass checks every
// value for NaN and infinity, since a selector might never pick one.
//
// A cast rounds every value instead: the rounded values are sent, the rounding errors stay.
//
// If the residual is in a device's memory (device_residual.h), a slice is a whole unit, and only
// the chosen entries are copied to host memory.
//
// With a density of 1 or more the whole vector is moved, by reference.  (A cast has density 1 and
// moves nothing.)  A ghost run gets as many entries as the density asks for.
#pragma once

#include <memory>
#include <vector>

#include "framework/compress/compressor.h"
#include "framework/exchange/hosted_actor.h"
#include "framework/exchange/sliced_work.h"
#include "framework/exchange/vector_ops.h"

namespace dtrain {

// Describes the range of an actor's vector from which entries are selected.
struct CompressedRange {
  VectorId from = kNoVector;
  Range range;
  double density = 1;
  int64_t origin = 0;           // index in the arena that positions are relative to
  VectorId masked = kNoVector;  // vector that is set to 0 wherever an entry is taken
  // Points to the destination of a cast's rounded values, beginning with the range's first.  Null:
  // a new vector.
  float* rounded = nullptr;
};

class Compression {
 public:
  // The references outlive it.  Nothing else may access the range until it is done.
  Compression(const ExchangeSpec& spec, HostedActor& host, VectorOps& ops,
              const CompressedRange& what);

  // Processes the next slice.  Returns false if it was the last.
  bool RunSlice();

  // False once a NaN or infinity was found.
  bool finite() const { return finite_; }
  // Call these when it is done.
  CompressionReport report() const;
  // Returns what was moved out of the vector; not to be called if CompressedRange::rounded is set.
  VectorSlice Take();

 private:
  void BeginUnit();
  void EndPass();
  void MoveOut(Range part);
  void SelectThere();
  void EndUnit();
  bool CheckSlice();
  bool RoundSlice();

  Nanos ChargedTime() const;

  const ExchangeSpec& spec_;
  const CompressedRange what_;
  const Compressor* const compressor_;
  HostedActor& host_;
  ActorVectors& vectors_;
  VectorOps& ops_;
  const Range range_;
  const bool ghost_;
  const Wire wire_;   // number format of a cast; kFp32 for selections
  const bool whole_;  // the whole vector is moved
  SelectionKey key_;

  const float* values_ = nullptr;  // of `from`, before entries are moved; null: all are zero
  // Has `from` in device memory.  Null: it is in host memory.
  DeviceResidual* const device_residual_;
  std::vector<Range> units_;
  size_t unit_ = 0;
  int64_t next_ = 0;  // index in the arena at which the next slice begins
  std::unique_ptr<Selection> selection_;
  GradientStatistics* const statistics_;  // gets statistics of this step; null: not requested
  bool choosing_ = false;                 // in the last pass over a unit, which moves entries
  bool checked_ = false;                  // this unit was checked for NaN and infinity

  Blob moved_;
  std::vector<float> dropped_;  // scratch for the values of `masked` that are dropped
  int64_t room_ = 0;            // entries that moved_ has room for
  int64_t count_ = 0;           // entries in moved_ so far
  bool finite_ = true;
};

// Runs the next slice and counts it.  `clock` measures its time; null: it is not measured.  Returns false if it was the
// last.
bool RunSliceOf(Compression& compression, const Clock* clock, WorkDone& done);

}  // namespace dtrain
