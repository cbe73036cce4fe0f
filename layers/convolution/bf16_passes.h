// The passes of the bf16 convolution over a batch.  They run one after the other, so they share their scratch memory:
//   Bf16Convolution   y = x * w, or, if `turned`, dx = dy * w
//   Bf16WeightsPass   dw from x and dy
// Images are packed a few rows at a time, so that the factors fit in a core's cache; small maps are packed as a whole.
// The division into rows, channels and threads does not change the result.  Both run the copy of the loops
// (bf16_loops.h) in Bf16Problem::loops.
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

// A convolution from x [N, C, H, W] to y [N, O, H', W']; C and O must be multiples of 32.
struct Bf16Problem {
  Shape x, y;
  int64_t kernel = 1, stride = 1, pad = 0;
  const Bf16Loops* loops = nullptr;
};

// Holds the sizes and strides of images in channels_last order, or of a subgrid of their pixels.
struct Bf16Map {
  int64_t channels = 0;
  int64_t rows = 0, columns = 0;
  int64_t row_floats = 0, pixel_floats = 0, image_floats = 0;
};

class Bf16Convolution {
 public:
  Bf16Convolution(const Bf16Problem& problem, bool turned, const Device& device);

  size_t ScratchBytes() const;
  // If `turned`, x is dy and y is dx. bias may be null.
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
  const int64_t weight_channels_;  // C of the weights [O, C, K, K]
  Bf16Map in_, out_;
  int64_t in_blocks_, out_blocks_;
  std::vector<Bf16Window> row_, column_;  // per output row, column
  std::vector<int32_t> place_;            // per tap
  bool by_outputs_;                       // packs whole maps; threads divide the channels
  int64_t band_;                          // otherwise: output rows computed at a time
  int64_t ring_;                          // otherwise: packed input rows kept
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
  // Return the numbers of one block of channels in the scratch memory.
  int64_t XBlock() const { return held_groups_ * ring_ * x_.columns * kBf16Square; }
  int64_t DyBlock() const { return held_groups_ * band_ * dy_.columns * kBf16Square; }
  int64_t PairsOf(int64_t group) const;

  const Bf16Loops& loops_;
  const Device device_;
  const int64_t batch_, groups_, kernel_;
  int64_t stride_, pad_;
  Bf16Map x_, dy_;
  int64_t in_blocks_, out_blocks_;
  bool whole_;           // x and dy are packed as a whole
  int64_t held_groups_;  // groups that are packed at a time
  int64_t band_;         // rows of dy packed at a time
  int64_t ring_;         // rows of x packed at a time
};

// Offers for `precision: bf16` if the channels are multiples of 32.  The rule depends only on channels and precision,
// so training and evaluation choose the same kernel for any batch.
std::optional<KernelOffer> OfferBf16Convolution(const KernelRequest& request);

// Returns a kernel of both passes that runs `loops`.
std::unique_ptr<Kernel> MakeBf16Convolution(const KernelRequest& request, const Bf16Loops& loops);

}  // namespace dtrain
