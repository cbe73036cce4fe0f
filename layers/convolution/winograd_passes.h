// The passes of the Winograd convolution over a batch.  They run one after the other, so they share their scratch
// memory:
//   WinogradConvolution     y = x * w, or, if `turned`, dx = dy * w
//   WinogradWeightsPass     dw from x and dy
// Both process the tiles in groups, so that the transformed images of a group need little memory.  The division into
// tiles, channels and threads does not change the result.
#pragma once

#include "framework/device/device.h"
#include "framework/device/shape.h"
#include "layers/convolution/winograd_loops.h"

namespace dtrain {

// Describes a convolution from x [N, in_height, in_width, C] to y [N, out_height, out_width, O], both channels last.
struct WinogradProblem {
  int64_t batch = 0;
  int64_t channels = 0;  // C
  int64_t outputs = 0;   // O
  WinogradTiling tiling;
};

// Return the tilings of the forward pass and of the pass for the input's gradient. stride must be 1, or 2 with pad 1.
WinogradTiling ForwardTiling(const Shape& x, const Shape& y, int64_t stride, int64_t pad);
WinogradTiling DataTiling(const Shape& x, const Shape& y, int64_t stride, int64_t pad);

// Returns the number of multiplications, as a share of the direct sum's.
double ShareOfDirect(const WinogradTiling& forward);

class WinogradConvolution {
 public:
  // If `turned`, the weights are [channels, outputs, 3, 3], and their windows are rotated by 180 degrees.
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
  int64_t parts_;  // parts of a group of tiles, computed in parallel
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
  int64_t item_channels_;  // channels of the gradient per item of work
  int64_t group_;          // tiles per group
};

}  // namespace dtrain
