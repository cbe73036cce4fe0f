// The two passes of the bf16 convolution over a batch, which share their scratch memory:
//   Bf16Convolution   y = x * w, and `turned` dx = dy * w
//   Bf16WeightsPass   dw from x and dy
// Images are packed for a few rows at a time, so that a core's cache holds what is multiplied; maps
// that are small pack whole.  How rows, channels and threads are cut changes no bit of the result.
// Both run the copy of the loops (bf16_loops.h) that they are given, in which implementations
// differ.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "framework/core/layout.h"
#include "framework/device/device.h"
#include "framework/device/shape.h"
#include "framework/nn/kernel.h"
#include "layers/convolution/bf16_loops.h"

namespace dtrain {

// One convolution layer at work: x [N, C, H, W] to y [N, O, H', W'], channels in multiples of 32.
struct Bf16Problem {
  Shape x, y;
  int64_t kernel = 1, stride = 1, pad = 0;
  const Bf16Loops* loops = nullptr;
};

// Images channels last, or every `step`-th pixel of them both ways.
struct Bf16Map {
  int64_t channels = 0;
  int64_t rows = 0, columns = 0;
  int64_t row_floats = 0, pixel_floats = 0, image_floats = 0;
};

class Bf16Convolution {
 public:
  Bf16Convolution(const Bf16Problem& problem, bool turned, const Device& device);

  size_t ScratchBytes() const;
  // x and y change places with `turned`; bias may be null.
  void Run(const float* x, const float* w, const float* bias, bool relu, float* y,
           void* scratch) const;

 private:
  struct Call;
  void RunByOutputs(const Call& call) const;
  void RunByRows(const Call& call) const;
  void PackRows(const Call& call, int64_t group, Range rows, Bf16* packed) const;
  void PackBlock(const Call& call, int64_t out_block, int64_t in_block, Bf16* packed) const;
  void ComputeRows(const Call& call, int64_t group, Range rows, int64_t out_block,
                   const Bf16* packed, const Bf16* weights) const;
  void RunRows(const Call& call, int64_t group, Range rows, Bf16* packed) const;
  Range InputRows(Range rows) const;

  int64_t WeightsOfBlock() const { return kernel_ * kernel_ * in_blocks_ * kBf16Square; }
  int64_t PackedRow() const { return in_.columns * in_blocks_ * kBf16Square; }

  const Bf16Loops& loops_;
  const bool turned_;
  const Device device_;
  const int64_t batch_, groups_, kernel_;
  const int64_t weight_channels_;  // C of the weights
  Bf16Map in_, out_;
  int64_t in_blocks_, out_blocks_;
  std::vector<Bf16Window> row_, column_;  // by output row, column
  std::vector<int32_t> place_;            // by tap
  bool by_outputs_;                       // packs whole maps, and shares out channels
  int64_t band_;                          // else: output rows at a time,
  int64_t ring_;                          // from so many packed ones
};

class Bf16WeightsPass {
 public:
  Bf16WeightsPass(const Bf16Problem& problem, const Device& device);

  size_t ScratchBytes() const;
  void Run(const float* x, const float* dy, bool accumulate, float* dw, void* scratch) const;

 private:
  struct Call;
  struct Part;
  void RunWhole(const Call& call) const;
  void RunBands(const Call& call) const;
  void PackX(const Call& call, int64_t group, Range rows, int thread, int team) const;
  void PackDy(const Call& call, int64_t group, Range rows, int thread, int team) const;
  void AddSums(const Call& call, const Part& part, int64_t item, Range taps, float* sums) const;
  void Finish(const Call& call, int64_t item, const float* sums) const;
  Range InputRows(Range rows) const;

  int64_t Items() const { return in_blocks_ * out_blocks_; }
  int64_t Taps() const { return kernel_ * kernel_; }
  int64_t SumsOfItem() const { return Taps() * kBf16Square; }
  // Numbers of a block of channels in scratch.
  int64_t XBlock() const { return held_groups_ * ring_ * x_.columns * kBf16Square; }
  int64_t DyBlock() const { return held_groups_ * band_ * dy_.columns * kBf16Square; }
  int64_t PairsOf(int64_t group) const;

  const Bf16Loops& loops_;
  const Device device_;
  const int64_t batch_, groups_, kernel_;
  int64_t stride_, pad_;
  Bf16Map x_, dy_;
  int64_t in_blocks_, out_blocks_;
  bool whole_;           // all of x and dy is packed at once
  int64_t held_groups_;  // packed at a time
  int64_t band_;         // rows of dy at a time,
  int64_t ring_;         // and rows of x that are packed then
};

// With `precision: bf16`, for channels in multiples of 32.  The rule looks at channels and
// precision only, so training and evaluation of any batch choose alike.
std::optional<KernelOffer> OfferBf16Convolution(const KernelRequest& request);

// A kernel of both passes that runs this copy of the loops.
std::unique_ptr<Kernel> MakeBf16Convolution(const KernelRequest& request, const Bf16Loops& loops);

}  // namespace dtrain
