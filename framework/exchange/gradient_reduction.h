// GradientReduction: the all-reduce of one range of a worker's gradient (a bucket), from the worker's own gradient to the
// sum of all in its place.  It is the only part of the exchange that knows how an all-reduce is compressed; the driver
// starts one that is not by itself.
//
// There is one object for each range during the whole run.  In each step it goes through these stages:
//
//   all, with residual    kTaking -> kSumming           at density 1: of the warm-up, or of dense first steps
//   selected entries      kAdding -> kSelecting -> kSumming -> kScattering
//   many selected         kAdding -> kSelecting -> kFilling -> kSumming     (CompressConfig::PaysDense)
//   a cast                kAdding -> kSelecting -> kSumming
//   a coder               kAdding -> (kEncoding -> kSumming) for each round -> kDecoding
//
// All ranks must start their all-reduces in the same order, but the network decides when a round of a coder ends.  So the
// first round of a range starts only after the last one of the range before (kWaiting).
//
// The report of the step follows the sum of the last range, or of its last round.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "framework/compress/coding.h"
#include "framework/exchange/compression.h"
#include "framework/exchange/hosted_actor.h"
#include "framework/exchange/reducer.h"
#include "framework/exchange/sliced_work.h"
#include "framework/exchange/vector_ops.h"

namespace dtrain {

class GradientReduction;

// Refers to what the reductions of a worker share.  All of it outlives them.
struct ReductionParts {
  const ExchangeSpec& spec;
  HostedActor& host;
  VectorOps& ops;
  Reducer& reducer;
  WorkDone& done;
  const Clock* clock;            // measures the time of compression; null: it stays 0
  std::function<bool()> finite;  // false once this rank knows of a NaN or infinity
  // Ranges of this step whose coders have rounds to start, in order.
  std::deque<GradientReduction*>& rounds;
  // Calls RunSlice of a reduction that has waited, when the effects before it are done.
  std::function<void(GradientReduction&)> resume;
};

class GradientReduction {
 public:
  // `unit`: index of the range among the buckets.
  GradientReduction(const ReductionParts& parts, Range range, int unit);

  const Range& range() const { return range_; }
  // Begins the all-reduce of a step: the range of the gradient is final.  Returns true if work has to be done before the
  // network: the caller then calls RunSlice until that returns false.
  bool Begin();
  // Does a slice of the work.  Returns false if the network has the next turn, or if it is over.
  bool RunSlice();
  // Takes a sum that is complete.  Returns true if there is work to do with it, as Begin does.
  bool Summed(const Reduced& reduced);
  bool over() const { return stage_ == Stage::kIdle; }

  // Visits the state of a coder.  Call it only between two steps.
  void Visit(StateVisitor& visitor) {
    if (coding_ != nullptr) coding_->Visit(visitor);
  }

 private:
  enum class Stage {
    kIdle,        // between two steps
    kTaking,      // gradient += residual, residual = 0
    kAdding,      // residual += gradient
    kSelecting,   // entries, or rounded values, leave the residual
    kFilling,     // they become a dense vector
    kEncoding,    // the words of a round
    kEncoded,     // they are encoded, and their measured time passes in a simulation
    kWaiting,     // they are encoded, but the range before has rounds to start
    kSumming,     // the network has it
    kScattering,  // gradient = the sum of selected entries
    kDecoding,    // gradient = what the words stand for
  };

  bool HoldsBack() const;
  bool MasksBehindSum() const;
  void BeginMasking();
  void Mask(Range slice, Range within);
  bool StartDense();
  bool StartCompressed();
  void BeginSelecting();
  bool Select();
  void TakeSlice();
  void AddSlice();
  void FillSlice();
  void ScatterSlice();
  bool EncodeParameter();
  bool StartRound();
  bool TakeRound(const Reduced& reduced);
  bool DecodeParameter();
  void TellNotFinite();
  const float* UpdateVelocity(Range slice);
  float* Gradients() const;
  // True if the gradient's sum is in the memory of the device, as the residual is.
  bool VectorsAreThere() const {
    return host_.device_residual != nullptr && host_.device_residual->vectors_are_there();
  }
  template <class Work>
  void NextSliceOf(const Work& work);
  template <class Work>
  void NextSliceOnDevice(const Work& work);

  const ReductionParts parts_;
  const ExchangeSpec& spec_;
  const CompressConfig& compress_;
  HostedActor& host_;
  VectorOps& ops_;
  WorkDone& done_;
  const Range range_;
  const int unit_;
  const VectorId residual_, velocity_;

  Stage stage_ = Stage::kIdle;
  double density_ = 1;        // of this step
  Range remaining_ = {};      // the part of the range that this stage has yet to do
  double written_share_ = 1;  // of kScattering
  std::unique_ptr<Compression> compression_;
  VectorSlice selected_;
  Reduced reduced_;
  std::vector<int32_t> masked_;  // positions in the range whose velocity is to be set to zero
  std::vector<float> dropped_;   // scratch for the velocity that is dropped

  // The rest is used by coders only.
  std::unique_ptr<Coding> coding_;
  std::vector<ArenaEntry> parameters_;
  int round_ = 0;
  size_t parameter_ = 0;
  std::vector<std::vector<float>> words_;     // by round
  std::vector<std::vector<float>> gathered_;  // by rank
};

}  // namespace dtrain
