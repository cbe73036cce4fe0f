// The two passes of the winograd convolution over a batch, which share their scratch memory:
//   WinogradConvolution     y = x * w, and with `turned` weights dx = dy * w
//   WinogradWeightsPass     dw from x and dy
// Both go over groups of tiles; what a group's transformed images take stays small.  How tiles,
// channels and threads are cut changes no bit of the result.
#pragma once

#include "framework/device/device.h"
#include "framework/device/shape.h"
#include "layers/convolution/winograd_loops.h"

namespace dtrain {

// x [N, in_height, in_width, C] to y [N, out_height, out_width, O], both channels last.
struct WinogradProblem {
  int64_t batch = 0;
  int64_t channels = 0;  // of x
  int64_t outputs = 0;   // of y
  WinogradTiling tiling;
};

// How the convolution of an image is cut, and that of the gradient of its input.  stride is 1, or 2
// with pad 1.
WinogradTiling ForwardTiling(const Shape& x, const Shape& y, int64_t stride, int64_t pad);
WinogradTiling DataTiling(const Shape& x, const Shape& y, int64_t stride, int64_t pad);

// Products that this takes, as a share of the direct sum's.
double ShareOfDirect(const WinogradTiling& forward);

class WinogradConvolution {
 public:
  // turned: the weights are [channels, outputs, 3, 3], and turned round.
  WinogradConvolution(const WinogradProblem& problem, bool turned, const Device& device);

  size_t ScratchBytes() const;
  // bias may be null.
  void Run(const float* x, const float* w, const float* bias, bool relu, float* y,
           void* scratch) const;

 private:
  struct Call;
  void TransformInput(const Call& call, int64_t first, int64_t count) const;
  void RunBlock(const Call& call, int64_t first, int64_t count, int64_t block, int64_t part,
                float* scratch) const;
  int64_t WeightFloats() const {
    return problem_.tiling.weight_points() * PanelFloats(kWinogradBlock);
  }
  int64_t ThreadFloats() const { return WeightFloats() + points_ * PanelFloats(part_tiles_); }

  const WinogradProblem problem_;
  const bool turned_;
  const Device device_;
  const int64_t points_;
  const int64_t tiles_;
  const int64_t in_blocks_, out_blocks_;
  int64_t parts_;  // of a group, which threads compute side by side
  int64_t part_tiles_;
};

class WinogradWeightsPass {
 public:
  WinogradWeightsPass(const WinogradProblem& problem, const Device& device);

  size_t ScratchBytes() const;
  void Run(const float* x, const float* dy, bool accumulate, float* dw, void* scratch) const;

 private:
  struct Call;
  void TransformImages(const Call& call, int64_t first, int64_t count) const;
  void RunItem(const Call& call, int64_t first, int64_t count, int64_t item, float* sums) const;
  int64_t ImageFloats(int64_t blocks) const { return blocks * points_ * PanelFloats(group_); }
  int64_t ItemFloats() const {
    return problem_.tiling.weight_points() * PanelFloats(item_channels_);
  }
  int64_t Items() const {
    return out_blocks_ * ((problem_.channels + item_channels_ - 1) / item_channels_);
  }

  const WinogradProblem problem_;
  const Device device_;
  const int64_t points_;
  const int64_t tiles_;
  const int64_t in_blocks_, out_blocks_;
  int64_t item_channels_;  // rows of the gradient that one item of work computes
  int64_t group_;          // tiles
};

}  // namespace dtrain
