#include "layers/convolution/winograd_passes.h"

#include <algorithm>

#include "framework/device/cpu/parallel.h"

namespace dtrain {
namespace {

constexpr int64_t kPartPoints = 36 * 128;  // a part's sums (1.2 MB) fit in a core's cache

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t BlocksOf(int64_t channels) { return CeilDiv(channels, kWinogradBlock); }
int64_t WidthOf(int64_t channels, int64_t block) {
  return std::min(kWinogradBlock, channels - block * kWinogradBlock);
}
int64_t TilesOf(const WinogradProblem& problem) {
  return problem.batch * problem.tiling.rows * problem.tiling.columns;
}

}  // namespace

namespace {

WinogradTiling TilingOf(WinogradKind kind, const Shape& in, const Shape& out, int64_t pad) {
  WinogradTiling tiling = {.kind = kind,
                           .pad = pad,
                           .in_height = in[2],
                           .in_width = in[3],
                           .out_height = out[2],
                           .out_width = out[3]};
  tiling.rows = CeilDiv(out[2], tiling.out_step());
  tiling.columns = CeilDiv(out[3], tiling.out_step());
  return tiling;
}

int64_t ProductsOf(const WinogradTiling& tiling) {
  return tiling.rows * tiling.columns * tiling.points();
}

// Returns the tiling in tiles of 4 x 4 or 2 x 2 pixels, whichever takes fewer products.
WinogradTiling DenseTiling(const Shape& in, const Shape& out, int64_t pad) {
  const WinogradTiling four = TilingOf(WinogradKind::kFour, in, out, pad);
  const WinogradTiling two = TilingOf(WinogradKind::kTwo, in, out, pad);
  return ProductsOf(four) <= ProductsOf(two) ? four : two;
}

}  // namespace

WinogradTiling ForwardTiling(const Shape& x, const Shape& y, int64_t stride, int64_t pad) {
  return stride == 2 ? TilingOf(WinogradKind::kHalving, x, y, pad) : DenseTiling(x, y, pad);
}

// With stride 1, dx is a convolution of dy with padding 2 - pad.
WinogradTiling DataTiling(const Shape& x, const Shape& y, int64_t stride, int64_t pad) {
  return stride == 2 ? TilingOf(WinogradKind::kDoubling, y, x, 0) : DenseTiling(y, x, 2 - pad);
}

double ShareOfDirect(const WinogradTiling& forward) {
  return static_cast<double>(ProductsOf(forward)) /
         static_cast<double>(9 * forward.out_height * forward.out_width);
}

// The arguments of one Run, and the scratch memory that its threads share.
struct WinogradConvolution::Call {
  const float* x;
  const float* w;
  const float* bias;
  bool relu;
  float* y;
  float* zeros;
  float* images;  // transformed
};

WinogradConvolution::WinogradConvolution(const WinogradProblem& problem, bool turned,
                                         const Device& device)
    : problem_(problem),
      turned_(turned),
      device_(device),
      points_(problem.tiling.points()),
      tiles_(TilesOf(problem)),
      in_blocks_(BlocksOf(problem.channels)),
      out_blocks_(BlocksOf(problem.outputs)) {
  parts_ = CeilDiv(device.threads, out_blocks_);
  part_tiles_ = std::min(kPartPoints / points_, CeilDiv(tiles_, parts_));
}

size_t WinogradConvolution::ScratchBytes() const {
  const int64_t floats = in_blocks_ * kWinogradBlock +
                         in_blocks_ * points_ * PanelFloats(parts_ * part_tiles_) +
                         device_.threads * ThreadFloats();
  return static_cast<size_t>(floats) * sizeof(float);
}

void WinogradConvolution::Run(const float* x, const float* w, const float* bias, bool relu,
                              float* y, void* scratch) const {
  const int64_t zeros = in_blocks_ * kWinogradBlock, group = parts_ * part_tiles_;
  float* const floats = static_cast<float*>(scratch);
  const Call call = {x, w, bias, relu, y, floats, floats + zeros};
  std::fill_n(call.zeros, zeros, 0.0f);
  float* const own = call.images + in_blocks_ * points_ * PanelFloats(group);
  for (int64_t first = 0; first < tiles_; first += group) {
    const int64_t count = std::min(group, tiles_ - first);
    TransformInput(call, first, count);
    RunTeam(device_.threads, [&](int thread, int team) {
      const Range items = SplitEvenly({0, parts_ * out_blocks_}, team, thread);
      for (int64_t i = items.begin; i < items.end; ++i) {
        RunBlock(call, first, count, i % out_blocks_, i / out_blocks_,
                 own + thread * ThreadFloats());
      }
    });
  }
}

void WinogradConvolution::TransformInput(const Call& call, int64_t first, int64_t count) const {
  RunTeam(device_.threads, [&](int thread, int team) {
    const Range share = SplitEvenly({0, count}, team, thread);
    const WinogradPart part = {.first = first + share.begin,
                               .count = share.size(),
                               .row = share.begin,
                               .panel_rows = parts_ * part_tiles_};
    DTRAIN_ISA_SELECT(device_.isa, WinogradInput)
    (problem_.tiling, part, problem_.channels, call.x, call.zeros, call.images);
  });
}

// Computes one block of outputs for one part of a group.  `scratch` is the thread's own; it holds the transformed
// weights, then the sums.
void WinogradConvolution::RunBlock(const Call& call, int64_t first, int64_t count, int64_t block,
                                   int64_t part, float* scratch) const {
  const int64_t begin = part * part_tiles_;
  const int64_t tiles = std::min(part_tiles_, count - begin);
  if (tiles <= 0) return;
  float* const weights = scratch;
  float* const sums = scratch + WeightFloats();
  const int64_t width = WidthOf(problem_.outputs, block);
  const int64_t panel = PanelFloats(parts_ * part_tiles_);
  for (int64_t in = 0; in < in_blocks_; ++in) {
    const int64_t terms = WidthOf(problem_.channels, in);
    WinogradWeightBlock part_of_w = {problem_.channels, block * kWinogradBlock, width,
                                     in * kWinogradBlock, terms};
    if (turned_) {
      part_of_w = {problem_.outputs, in * kWinogradBlock, terms, block * kWinogradBlock, width};
    }
    DTRAIN_ISA_SELECT(device_.isa, WinogradWeights)
    (problem_.tiling.kind, part_of_w, turned_, call.w, weights);
    const float* const images = call.images + in * points_ * panel + begin * kWinogradBlock;
    for (int64_t p = 0; p < points_; ++p) {
      DTRAIN_ISA_SELECT(device_.isa, WinogradProduct)
      ({tiles, width, terms, kWinogradBlock, 1}, images + p * panel,
       weights + problem_.tiling.WeightPoint(p) * PanelFloats(kWinogradBlock), in > 0,
       sums + p * PanelFloats(part_tiles_));
    }
  }
  DTRAIN_ISA_SELECT(device_.isa, WinogradOutput)
  (problem_.tiling, {first + begin, tiles, 0, part_tiles_}, problem_.outputs,
   block * kWinogradBlock, width, sums, call.bias, call.relu, call.y);
}

struct WinogradWeightsPass::Call {
  const float* x;
  const float* dy;
  bool accumulate;
  float* dw;
  float* zeros;
  float* inputs;   // transformed
  float* outputs;  // transformed gradients
  float* sums;
};

WinogradWeightsPass::WinogradWeightsPass(const WinogradProblem& problem, const Device& device)
    : problem_(problem),
      device_(device),
      points_(problem.tiling.points()),
      tiles_(TilesOf(problem)),
      in_blocks_(BlocksOf(problem.channels)),
      out_blocks_(BlocksOf(problem.outputs)) {
  item_channels_ = kWinogradBlock;
  while (item_channels_ > 16 && Items() < device.threads) item_channels_ /= 2;
  // A group's images should fit in a core's cache.  Up to 128 tiles form a single group, so that each item's sums,
  // which are large if there are many channels, can be discarded after the item.
  const bool few = in_blocks_ * out_blocks_ == 1 && !problem.tiling.strided();
  group_ = tiles_ <= 128 ? tiles_ : std::min<int64_t>(tiles_, few ? 64 * device.threads : 64);
}

size_t WinogradWeightsPass::ScratchBytes() const {
  const int64_t zeros = std::max(in_blocks_, out_blocks_) * kWinogradBlock;
  const int64_t items = group_ == tiles_ ? device_.threads : Items();
  const int64_t floats = zeros + ImageFloats(in_blocks_ + out_blocks_) + items * ItemFloats();
  return static_cast<size_t>(floats) * sizeof(float);
}

void WinogradWeightsPass::Run(const float* x, const float* dy, bool accumulate, float* dw,
                              void* scratch) const {
  const int64_t zeros = std::max(in_blocks_, out_blocks_) * kWinogradBlock;
  float* const floats = static_cast<float*>(scratch);
  Call call = {x, dy, accumulate, dw, floats, floats + zeros, nullptr, nullptr};
  call.outputs = call.inputs + ImageFloats(in_blocks_);
  call.sums = call.outputs + ImageFloats(out_blocks_);
  std::fill_n(call.zeros, zeros, 0.0f);
  for (int64_t first = 0; first < tiles_; first += group_) {
    const int64_t count = std::min(group_, tiles_ - first);
    TransformImages(call, first, count);
    RunTeam(device_.threads, [&](int thread, int team) {
      const Range items = SplitEvenly({0, Items()}, team, thread);
      for (int64_t i = items.begin; i < items.end; ++i) {
        // With one group an item's sums are not needed after it, so each thread needs room for one item only.
        RunItem(call, first, count, i, call.sums + (group_ == tiles_ ? thread : i) * ItemFloats());
      }
    });
  }
}

void WinogradWeightsPass::TransformImages(const Call& call, int64_t first, int64_t count) const {
  RunTeam(device_.threads, [&](int thread, int team) {
    const Range share = SplitEvenly({0, count}, team, thread);
    const WinogradPart part = {first + share.begin, share.size(), share.begin, group_};
    DTRAIN_ISA_SELECT(device_.isa, WinogradInput)
    (problem_.tiling, part, problem_.channels, call.x, call.zeros, call.inputs);
    DTRAIN_ISA_SELECT(device_.isa, WinogradOutputGradient)
    (problem_.tiling, part, problem_.outputs, call.dy, call.zeros, call.outputs);
  });
}

// Adds a group's part to the gradient of item_channels_ channels of one block of outputs; after the last group it
// transforms the sums to the gradient.
void WinogradWeightsPass::RunItem(const Call& call, int64_t first, int64_t count, int64_t item,
                                  float* sums) const {
  const int64_t block = item % out_blocks_, channel = item / out_blocks_ * item_channels_;
  const int64_t channels = std::min(item_channels_, problem_.channels - channel);
  const int64_t width = WidthOf(problem_.outputs, block), panel = PanelFloats(group_);
  const float* const x =
      call.inputs + channel / kWinogradBlock * points_ * panel + channel % kWinogradBlock;
  const float* const dy = call.outputs + block * points_ * panel;
  int64_t begun = 0;  // weight points before this one have a sum
  for (int64_t p = 0; p < points_; ++p) {
    const int64_t point = problem_.tiling.WeightPoint(p);
    const bool fresh = first == 0 && point >= begun;
    begun = std::max(begun, point + 1);
    // Process parts that fit in a core's L1 cache.
    for (int64_t t = 0; t < count; t += kWinogradBlock) {
      DTRAIN_ISA_SELECT(device_.isa, WinogradProduct)
      ({channels, width, std::min(kWinogradBlock, count - t), 1, kWinogradBlock},
       x + p * panel + t * kWinogradBlock, dy + p * panel + t * kWinogradBlock, !fresh || t > 0,
       sums + point * PanelFloats(item_channels_));
    }
  }
  if (first + count < tiles_) return;
  DTRAIN_ISA_SELECT(device_.isa, WinogradWeightGradient)
  (problem_.tiling.kind, {problem_.channels, block * kWinogradBlock, width, channel, channels},
   item_channels_, sums, call.accumulate, call.dw);
}

}  // namespace dtrain
