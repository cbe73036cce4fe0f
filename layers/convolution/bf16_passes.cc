#include "layers/convolution/bf16_passes.h"

#include <algorithm>

#include "framework/device/cpu/parallel.h"

namespace dtrain {
namespace {

constexpr int64_t kWholeBytes = 1 << 20;   // up to this, a group's maps are packed as a whole
constexpr int64_t kBandBytes = 512 << 10;  // for one core's packed rows
constexpr int64_t kItemBytes = 512 << 10;  // for what one weights item reads of whole maps
constexpr int64_t kHeldBytes = 1 << 20;    // for the packed rows of a weights pass

int64_t GroupsOf(int64_t batch) { return (batch + kBf16Images - 1) / kBf16Images; }
int64_t ImagesOf(int64_t batch, int64_t group) {
  return std::min(kBf16Images, batch - group * kBf16Images);
}

Bf16Map MapOf(const Shape& shape) {
  const int64_t row = shape[3] * shape[1];
  return {shape[1], shape[2], shape[3], row, shape[1], shape[2] * row};
}

// Returns true for a 1 x 1 window without padding that reads only every stride-th pixel.
bool ReadsEvery(const Bf16Problem& p) { return p.kernel == 1 && p.stride > 1 && p.pad == 0; }

Bf16Map EveryPixel(const Bf16Problem& p) {
  Bf16Map map = MapOf(p.x);
  map.rows = p.y[2], map.columns = p.y[3];
  map.row_floats *= p.stride, map.pixel_floats *= p.stride;
  return map;
}

// Returns the windows of the forward pass: y[i] = sum over k of x[i stride - pad + k] w[k].
std::vector<Bf16Window> ForwardWindows(int64_t in, int64_t out, int64_t kernel, int64_t stride,
                                       int64_t pad) {
  std::vector<Bf16Window> windows;
  for (int64_t i = 0; i < out; ++i) {
    const int64_t left = i * stride - pad;
    const int64_t begin = std::max<int64_t>(0, -left), end = std::min(kernel, in - left);
    windows.push_back({static_cast<int32_t>(left + begin), static_cast<int32_t>(begin),
                       static_cast<int32_t>(std::max<int64_t>(0, end - begin))});
  }
  return windows;
}

// Returns the position of tap k in the turned weights.  Taps with the same remainder modulo the stride are adjacent, in
// falling order, so that consecutive taps meet consecutive elements of dy.
int64_t TurnedPlace(int64_t k, int64_t kernel, int64_t stride) {
  int64_t place = 0;
  for (int64_t other = 0; other < kernel; ++other) {
    if (other % stride < k % stride || (other % stride == k % stride && other > k)) ++place;
  }
  return place;
}

// Returns the windows of the pass for dx[i] = sum of dy[(i + pad - k) / stride] w[k] over all k that give an integer
// index.
std::vector<Bf16Window> TurnedWindows(int64_t in, int64_t out, int64_t kernel, int64_t stride,
                                      int64_t pad) {
  std::vector<Bf16Window> windows;
  for (int64_t i = 0; i < in; ++i) {
    Bf16Window window;
    for (int64_t k = kernel - 1; k >= 0; --k) {
      const int64_t at = i + pad - k;
      if (at < 0 || at % stride != 0 || at / stride >= out) continue;
      if (window.count++ > 0) continue;
      window.first = static_cast<int32_t>(at / stride);
      window.tap = static_cast<int32_t>(TurnedPlace(k, kernel, stride));
    }
    windows.push_back(window);
  }
  return windows;
}

std::vector<int32_t> PlacesOf(const Bf16Problem& p, bool turned) {
  std::vector<int32_t> places;
  const auto place = [&](int64_t k) { return turned ? TurnedPlace(k, p.kernel, p.stride) : k; };
  for (int64_t tap = 0; tap < p.kernel * p.kernel; ++tap) {
    places.push_back(
        static_cast<int32_t>(place(tap / p.kernel) * p.kernel + place(tap % p.kernel)));
  }
  return places;
}

}  // namespace

// The arguments of one Run, and its scratch memory.
struct Bf16Convolution::Call {
  const float* x;
  const float* w;
  const float* bias;
  bool relu;
  float* y;
  Bf16* shared;  // packed images or weights
  Bf16* own;     // scratch of the first thread; the others' follows
};

Bf16Convolution::Bf16Convolution(const Bf16Problem& p, bool turned, const Device& device)
    : loops_(*p.loops),
      turned_(turned),
      device_(device),
      batch_(p.x[0]),
      groups_(GroupsOf(batch_)),
      kernel_(p.kernel),
      weight_channels_(p.x[1]),
      in_(MapOf(turned ? p.y : p.x)),
      out_(MapOf(turned ? p.x : p.y)),
      in_blocks_(in_.channels / kBf16Block),
      out_blocks_(out_.channels / kBf16Block),
      place_(PlacesOf(p, turned)) {
  if (turned) {
    row_ = TurnedWindows(p.x[2], p.y[2], kernel_, p.stride, p.pad);
    column_ = TurnedWindows(p.x[3], p.y[3], kernel_, p.stride, p.pad);
  } else {
    const bool every = ReadsEvery(p);
    const int64_t stride = every ? 1 : p.stride;
    if (every) in_ = EveryPixel(p);
    row_ = ForwardWindows(in_.rows, out_.rows, kernel_, stride, p.pad);
    column_ = ForwardWindows(in_.columns, out_.columns, kernel_, stride, p.pad);
  }
  const int64_t row_bytes = PackedRow() * static_cast<int64_t>(sizeof(Bf16));
  by_outputs_ = in_.rows * row_bytes <= kWholeBytes;
  band_ = 0;
  do {
    ++band_;
    ring_ = 1;
    for (int64_t r = 0; r + band_ <= out_.rows; ++r) {
      ring_ = std::max(ring_, InputRows({r, r + band_}).size());
    }
  } while (band_ < out_.rows && (ring_ + 1) * row_bytes <= kBandBytes);
  if (by_outputs_) ring_ = in_.rows;
}

// Returns the input rows that a range of output rows reads.
Range Bf16Convolution::InputRows(Range rows) const {
  Range read = {in_.rows, 0};
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    if (row_[r].count == 0) continue;
    read.begin = std::min<int64_t>(read.begin, row_[r].first);
    read.end = std::max<int64_t>(read.end, row_[r].first + row_[r].count);
  }
  return read;
}

size_t Bf16Convolution::ScratchBytes() const {
  const int64_t shared =
      by_outputs_ ? groups_ * in_.rows * PackedRow() : out_blocks_ * WeightsOfBlock();
  const int64_t own = by_outputs_ ? WeightsOfBlock() : ring_ * PackedRow();
  return static_cast<size_t>(shared + device_.threads * own) * sizeof(Bf16);
}

void Bf16Convolution::Run(const float* x, const float* w, const float* bias, bool relu, float* y,
                          void* scratch) const {
  Call call = {x, w, bias, relu, y, static_cast<Bf16*>(scratch), nullptr};
  call.own = call.shared +
             (by_outputs_ ? groups_ * in_.rows * PackedRow() : out_blocks_ * WeightsOfBlock());
  by_outputs_ ? RunByOutputs(call) : RunByRows(call);
}

// For small maps: packs all images; then each thread computes some blocks of outputs (or a part of their rows, if there
// are fewer blocks than threads) and packs the weights that it needs.
void Bf16Convolution::RunByOutputs(const Call& call) const {
  RunTeam(device_.threads, [&](int thread, int team) {
    const Range share = SplitEvenly({0, groups_ * in_.rows}, team, thread);
    for (int64_t i = share.begin; i < share.end; ++i) {
      const int64_t group = i / in_.rows, row = i % in_.rows;
      PackRows(call, group, {row, row + 1}, call.shared + group * in_.rows * PackedRow());
    }
  });
  const int64_t parts = std::min((device_.threads + out_blocks_ - 1) / out_blocks_, out_.rows);
  RunTeam(device_.threads, [&](int thread, int team) {
    Bf16* const weights = call.own + thread * WeightsOfBlock();
    const Range share = SplitEvenly({0, out_blocks_ * parts}, team, thread);
    for (int64_t i = share.begin; i < share.end; ++i) {
      const int64_t block = i / parts;
      for (int64_t in = 0; in < in_blocks_; ++in) PackBlock(call, block, in, weights);
      for (int64_t group = 0; group < groups_; ++group) {
        ComputeRows(call, group, SplitEvenly({0, out_.rows}, parts, i % parts), block,
                    call.shared + group * in_.rows * PackedRow(), weights);
      }
    }
  });
}

// For large maps: packs all weights; then each thread computes some rows of the output and packs the rows of images
// that it needs.
void Bf16Convolution::RunByRows(const Call& call) const {
  ParallelFor(device_.threads, out_blocks_ * in_blocks_, [&](int64_t i) {
    const int64_t block = i / in_blocks_;
    PackBlock(call, block, i % in_blocks_, call.shared + block * WeightsOfBlock());
  });
  RunTeam(device_.threads, [&](int thread, int team) {
    const Range share = SplitEvenly({0, groups_ * out_.rows}, team, thread);
    for (int64_t i = share.begin; i < share.end;) {
      const int64_t group = i / out_.rows, first = i % out_.rows;
      const int64_t count = std::min(out_.rows - first, share.end - i);
      RunRows(call, group, {first, first + count}, call.own + thread * ring_ * PackedRow());
      i += count;
    }
  });
}

// Computes consecutive rows, one band at a time; a band reuses the packed rows that the previous band read.
void Bf16Convolution::RunRows(const Call& call, int64_t group, Range rows, Bf16* packed) const {
  int64_t done = 0;  // input rows before this one are packed
  for (int64_t r = rows.begin; r < rows.end; r += band_) {
    const Range band = {r, std::min(r + band_, rows.end)};
    const Range read = InputRows(band);
    PackRows(call, group, {std::max(done, read.begin), read.end}, packed);
    done = std::max(done, read.end);
    for (int64_t block = 0; block < out_blocks_; ++block) {
      ComputeRows(call, group, band, block, packed, call.shared + block * WeightsOfBlock());
    }
  }
}

void Bf16Convolution::PackRows(const Call& call, int64_t group, Range rows, Bf16* packed) const {
  const Bf16Pixels pixels = {.images = ImagesOf(batch_, group),
                             .image_floats = in_.image_floats,
                             .pixels = in_.columns,
                             .pixel_floats = in_.pixel_floats,
                             .channels = in_.channels};
  const float* const images = call.x + group * kBf16Images * in_.image_floats;
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    loops_.pack_rows(pixels, images + row * in_.row_floats, packed + row % ring_ * PackedRow());
  }
}

void Bf16Convolution::PackBlock(const Call& call, int64_t out_block, int64_t in_block,
                                Bf16* packed) const {
  Bf16WeightBlock block = {.channels = weight_channels_,
                           .taps = kernel_ * kernel_,
                           .first_output = out_block * kBf16Block,
                           .first_channel = in_block * kBf16Block};
  if (turned_) std::swap(block.first_output, block.first_channel);
  loops_.pack_weights(block, turned_, call.w, place_.data(), in_blocks_ * kBf16Square,
                      packed + in_block * kBf16Square);
}

void Bf16Convolution::ComputeRows(const Call& call, int64_t group, Range rows, int64_t out_block,
                                  const Bf16* packed, const Bf16* weights) const {
  const int64_t channel = out_block * kBf16Block;
  Bf16RowJob job = {.images = ImagesOf(batch_, group),
                    .columns = out_.columns,
                    .column = column_.data(),
                    .input = packed,
                    .ring = ring_,
                    .input_row = PackedRow(),
                    .blocks = in_blocks_,
                    .weights = weights,
                    .kernel = kernel_,
                    .bias = call.bias == nullptr ? nullptr : call.bias + channel,
                    .relu = call.relu,
                    .image_floats = out_.image_floats,
                    .pixel_floats = out_.pixel_floats};
  float* const images = call.y + group * kBf16Images * out_.image_floats + channel;
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    job.row = row_[row];
    job.output = images + row * out_.row_floats;
    loops_.row(job);
  }
}

struct Bf16WeightsPass::Call {
  const float* x;
  const float* dy;
  bool accumulate;
  float* dw;
  Bf16* packed_x;
  Bf16* packed_dy;
  float* sums;
};

// Describes the rows of dy that are packed, for one group or, if whole_, for all groups.
struct Bf16WeightsPass::Part {
  int64_t group;
  Range rows;
  bool fresh;  // the first part: overwrite the sums
};

Bf16WeightsPass::Bf16WeightsPass(const Bf16Problem& p, const Device& device)
    : loops_(*p.loops),
      device_(device),
      batch_(p.x[0]),
      groups_(GroupsOf(batch_)),
      kernel_(p.kernel),
      stride_(p.stride),
      pad_(p.pad),
      x_(MapOf(p.x)),
      dy_(MapOf(p.y)),
      in_blocks_(x_.channels / kBf16Block),
      out_blocks_(dy_.channels / kBf16Block) {
  if (ReadsEvery(p)) x_ = EveryPixel(p), stride_ = 1;
  constexpr int64_t kBytes = kBf16Square * sizeof(Bf16);
  whole_ = groups_ * (x_.rows * x_.columns + dy_.rows * dy_.columns) * kBytes <= kItemBytes;
  held_groups_ = whole_ ? groups_ : 1;
  const int64_t x_row = in_blocks_ * x_.columns * kBytes;
  const int64_t dy_row = out_blocks_ * dy_.columns * kBytes;
  const auto ring = [&](int64_t band) {
    return std::min(x_.rows, (band - 1) * stride_ + std::max(kernel_, stride_));
  };
  band_ = 1;
  while (band_ < dy_.rows && (band_ + 1) * dy_row + ring(band_ + 1) * x_row <= kHeldBytes) ++band_;
  if (whole_) band_ = dy_.rows;
  ring_ = whole_ ? x_.rows : ring(band_);
}

// A sum over a single group may use fewer pairs than a full tile.  A sum over several groups must use full tiles, since
// the tile shape is fixed within a sum.
int64_t Bf16WeightsPass::PairsOf(int64_t group) const {
  return whole_ && groups_ > 1 ? kBf16Images / 2 : (ImagesOf(batch_, group) + 1) / 2;
}

Range Bf16WeightsPass::InputRows(Range rows) const {
  return {std::max<int64_t>(0, rows.begin * stride_ - pad_),
          std::min(x_.rows, (rows.end - 1) * stride_ - pad_ + kernel_)};
}

size_t Bf16WeightsPass::ScratchBytes() const {
  const int64_t packed = in_blocks_ * XBlock() + out_blocks_ * DyBlock();
  const int64_t sums = (whole_ ? device_.threads : Items()) * SumsOfItem();
  return static_cast<size_t>(packed) * sizeof(Bf16) + static_cast<size_t>(sums) * sizeof(float);
}

void Bf16WeightsPass::Run(const float* x, const float* dy, bool accumulate, float* dw,
                          void* scratch) const {
  Call call = {x, dy, accumulate, dw, static_cast<Bf16*>(scratch), nullptr, nullptr};
  call.packed_dy = call.packed_x + in_blocks_ * XBlock();
  call.sums = reinterpret_cast<float*>(call.packed_dy + out_blocks_ * DyBlock());
  whole_ ? RunWhole(call) : RunBands(call);
}

// Packs everything first; then an item of work computes the whole gradient of one block of weights.
void Bf16WeightsPass::RunWhole(const Call& call) const {
  RunTeam(device_.threads, [&](int thread, int team) {
    for (int64_t group = 0; group < groups_; ++group) {
      PackX(call, group, {0, x_.rows}, thread, team);
      PackDy(call, group, {0, dy_.rows}, thread, team);
    }
  });
  RunTeam(device_.threads, [&](int thread, int team) {
    float* const sums = call.sums + thread * SumsOfItem();
    const Range share = SplitEvenly({0, Items()}, team, thread);
    for (int64_t item = share.begin; item < share.end; ++item) {
      AddSums(call, {0, {0, dy_.rows}, true}, item, {0, Taps()}, sums);
      Finish(call, item, sums);
    }
  });
}

// Processes group by group and band by band; an item of work adds to one tap of one block of weights.
void Bf16WeightsPass::RunBands(const Call& call) const {
  for (int64_t group = 0; group < groups_; ++group) {
    int64_t done = 0;  // input rows before this one are packed
    for (int64_t r = 0; r < dy_.rows; r += band_) {
      const Range band = {r, std::min(r + band_, dy_.rows)};
      const Range read = InputRows(band);
      RunTeam(device_.threads, [&](int thread, int team) {
        PackX(call, group, {std::max(done, read.begin), read.end}, thread, team);
        PackDy(call, group, band, thread, team);
      });
      done = std::max(done, read.end);
      RunTeam(device_.threads, [&](int thread, int team) {
        const Range share = SplitEvenly({0, Items() * Taps()}, team, thread);
        for (int64_t i = share.begin; i < share.end;) {
          const int64_t item = i / Taps();
          const int64_t end = std::min(share.end, (item + 1) * Taps());
          AddSums(call, {group, band, group == 0 && r == 0}, item,
                  {i - item * Taps(), end - item * Taps()}, call.sums + item * SumsOfItem());
          i = end;
        }
      });
    }
  }
  ParallelFor(device_.threads, Items(),
              [&](int64_t item) { Finish(call, item, call.sums + item * SumsOfItem()); });
}

void Bf16WeightsPass::PackX(const Call& call, int64_t group, Range rows, int thread,
                            int team) const {
  const Bf16Pixels pixels = {ImagesOf(batch_, group), x_.image_floats, x_.columns, x_.pixel_floats,
                             x_.channels};
  const Range share = SplitEvenly(rows, team, thread);
  const int64_t held = whole_ ? group : 0;
  for (int64_t row = share.begin; row < share.end; ++row) {
    loops_.pack_pairs(pixels, call.x + group * kBf16Images * x_.image_floats + row * x_.row_floats,
                      PairsOf(group), XBlock(),
                      call.packed_x + (held * ring_ + row % ring_) * x_.columns * kBf16Square);
  }
}

void Bf16WeightsPass::PackDy(const Call& call, int64_t group, Range rows, int thread,
                             int team) const {
  const Bf16Pixels pixels = {ImagesOf(batch_, group), dy_.image_floats, dy_.columns,
                             dy_.pixel_floats, dy_.channels};
  const Range share = SplitEvenly(rows, team, thread);
  const int64_t held = whole_ ? group : 0;
  for (int64_t row = share.begin; row < share.end; ++row) {
    loops_.pack_turned(
        pixels, call.dy + group * kBf16Images * dy_.image_floats + row * dy_.row_floats,
        PairsOf(group), DyBlock(),
        call.packed_dy + (held * band_ + row - rows.begin) * dy_.columns * kBf16Square);
  }
}

void Bf16WeightsPass::AddSums(const Call& call, const Part& part, int64_t item, Range taps,
                              float* sums) const {
  const int64_t out_block = item / in_blocks_, in_block = item % in_blocks_;
  loops_.weight_sums({.pairs = PairsOf(part.group),
                      .groups = held_groups_,
                      .rows = part.rows.size(),
                      .columns = dy_.columns,
                      .first_row = part.rows.begin,
                      .dy = call.packed_dy + out_block * DyBlock(),
                      .dy_group = band_ * dy_.columns * kBf16Square,
                      .x = call.packed_x + in_block * XBlock(),
                      .x_group = ring_ * x_.columns * kBf16Square,
                      .ring = ring_,
                      .x_rows = x_.rows,
                      .x_columns = x_.columns,
                      .kernel = kernel_,
                      .stride = stride_,
                      .pad = pad_,
                      .first_tap = taps.begin,
                      .taps = taps.size(),
                      .fresh = part.fresh,
                      .sums = sums});
}

void Bf16WeightsPass::Finish(const Call& call, int64_t item, const float* sums) const {
  loops_.weight_gradient({.channels = x_.channels,
                          .taps = Taps(),
                          .first_output = item / in_blocks_ * kBf16Block,
                          .first_channel = item % in_blocks_ * kBf16Block},
                         sums, call.accumulate, call.dw);
}

}  // namespace dtrain
