// Loops over images in packs of 16 bytes.
//
// With channels last an image is a matrix with a row for each pixel and a column for each channel.  A thread stays with the
// channels of one pack and goes down the rows, so that it reads once what belongs to its channels.  A pack of plain images
// has pixels of one channel.  A functor has two functions:
//
//   struct AddBias {
//     const float* bias;
//     using Channel = float;                                           // what belongs to a channel
//     DT_DEVICE Channel Of(int64_t c) const { return bias[c]; }
//     DT_DEVICE float operator()(float bias, const float* x) const { return x[0] + bias; }
//   };
//   MapChannels(queue, {"add bias", {Reads(bias, columns), Updates(y, rows * columns)}}, {rows, columns},
//               AddBias{bias}, Operands<T, 1>{y}, y);
//
// Elements are read and written as T, and computed in float.  Images with a number of channels (plain: of pixels) that
// fills no packs, or at an address that is no multiple of 16, are read element by element.
//
// The host runs the functions of a thread as well, for one thread after the other (loops.h).
#pragma once

#include <cstring>
#include <initializer_list>

#include "framework/kernels/cuda/column_sums.h"

#ifdef __CUDACC__
#define DT_UNROLL _Pragma("unroll")
#else
#define DT_UNROLL
#endif

namespace dtrain {

// Images that are read; null: zeros.
template <class T, int N>
struct Operands {
  const T* at[N];
};

namespace channels {

constexpr unsigned kThreads = 256;             // of a block
constexpr unsigned kTile = ColumnSums::kTile;  // packs of a block that adds up columns, at most

template <int W, class T>
DT_DEVICE void LoadPack(const T* from, float (&to)[W]) {
  T elements[W];
#ifdef __CUDA_ARCH__
  if constexpr (W > 1) {
    const uint4 bytes = *reinterpret_cast<const uint4*>(from);
    memcpy(elements, &bytes, sizeof(bytes));
  } else {
    elements[0] = from[0];
  }
#else
  std::memcpy(static_cast<void*>(elements), from, sizeof(elements));
#endif
  DT_UNROLL for (int k = 0; k < W; ++k) to[k] = static_cast<float>(elements[k]);
}

template <int W, class T>
DT_DEVICE void StorePack(const float (&from)[W], T* to) {
  T elements[W];
  DT_UNROLL for (int k = 0; k < W; ++k) elements[k] = static_cast<T>(from[k]);
#ifdef __CUDA_ARCH__
  if constexpr (W > 1) {
    uint4 bytes;
    memcpy(&bytes, elements, sizeof(bytes));
    *reinterpret_cast<uint4*>(to) = bytes;
  } else {
    to[0] = elements[0];
  }
#else
  std::memcpy(static_cast<void*>(to), elements, sizeof(elements));
#endif
}

// A pack of each operand.
template <int W, int N>
struct Packs {
  float at[N][W] = {};

  template <class T>
  DT_DEVICE void Load(const Operands<T, N>& x, int64_t i) {
    DT_UNROLL for (int n = 0; n < N; ++n) {
      if (x.at[n] != nullptr) LoadPack<W>(x.at[n] + i, at[n]);
    }
  }
  DT_DEVICE void Element(int k, float (&element)[N]) const {
    DT_UNROLL for (int n = 0; n < N; ++n) element[n] = at[n][k];
  }
};

// Loads a pack of each operand from element i on, and writes f of each of its elements to y.
template <int W, class Channel, class T, int N, class F>
DT_DEVICE void MapPack(const Channel (&channel)[W], const F& f, const Operands<T, N>& x, int64_t i,
                       T* y) {
  Packs<W, N> loaded;
  loaded.Load(x, i);
  float results[W] = {};
  DT_UNROLL for (int k = 0; k < W; ++k) {
    float element[N];
    loaded.Element(k, element);
    results[k] = f(channel[k], element);
  }
  StorePack<W>(results, y + i);
}

// Does the part of MapChannels that belongs to a thread.  There is at least one for each pack of a row.
template <int W, class T, int N, class F>
DT_DEVICE void MapThread(unsigned thread, unsigned threads, const ChannelRows& of, const F& f,
                         const Operands<T, N>& x, T* y) {
  const auto packs = static_cast<unsigned>(of.columns / W);
  const unsigned at_once = threads / packs;  // rows
  if (thread >= at_once * packs) return;
  const int64_t first = int64_t{thread % packs} * W;
  typename F::Channel channel[W];
  DT_UNROLL for (int k = 0; k < W; ++k) channel[k] = f.Of(first + k);
  for (int64_t row = thread / packs; row < of.rows; row += at_once) {
    MapPack<W>(channel, f, x, row * of.columns + first, y);
  }
}

// The same for plain images, whose packs the threads share out.
template <int W, class T, int N, class F>
DT_DEVICE void MapPlainThread(unsigned thread, unsigned threads, const ChannelRows& of, const F& f,
                              const Operands<T, N>& x, T* y) {
  const int64_t count = of.rows * of.columns;
  for (int64_t i = int64_t{thread} * W; i < count; i += int64_t{threads} * W) {
    typename F::Channel channel[W];
    channel[0] = f.Of(of.ChannelOf(i));
    DT_UNROLL for (int k = 1; k < W; ++k) channel[k] = channel[0];
    MapPack<W>(channel, f, x, i, y);
  }
}

// How a block adds up columns: each lane of `tile` packs adds up some rows, and then the lanes are added.
template <int W>
struct Tile {
  unsigned packs, tile, lanes;

  DT_DEVICE explicit Tile(int64_t columns)
      : packs(static_cast<unsigned>(columns / W)),
        tile(packs < kTile ? packs : kTile),
        lanes(kThreads / tile) {}
};

// Says where the packs of W channels are, if channels are last.
template <int W>
struct PacksOfChannels {
  ChannelRows of;
  int64_t column;  // the first of the channels

  DT_DEVICE int64_t count() const { return of.rows; }
  DT_DEVICE int64_t At(int64_t row) const { return row * of.columns + column; }
  DT_DEVICE int64_t ChannelAt(int k) const { return column + k; }
};

// Says where the packs of a channel are in plain images.
template <int W>
struct PacksOfPlanes {
  ChannelRows of;
  int64_t channel;

  DT_DEVICE int64_t count() const { return of.rows / W; }
  DT_DEVICE int64_t At(int64_t pack) const { return of.At(pack * W, channel); }
  DT_DEVICE int64_t ChannelAt(int) const { return channel; }
};

// Adds packs first, first + step, ... to `sums`, and writes to `out` what f computes beside, if it is not null.
template <int W, class Sum, class T, int N, class F, class Places>
DT_DEVICE void SumPacks(int64_t first, int64_t step, const Places& places, const F& f,
                        const Operands<T, N>& x, T* out, Sum (&sums)[W]) {
  typename F::Channel channel[W];
  DT_UNROLL for (int k = 0; k < W; ++k) channel[k] = f.Of(places.ChannelAt(k));
  const int64_t count = places.count();
  // Two are under way at once, because few threads share the memory's latency.
  for (int64_t pack = first; pack < count; pack += 2 * step) {
    Packs<W, N> loaded[2];
    const bool second = pack + step < count;
    const int64_t at[2] = {places.At(pack), second ? places.At(pack + step) : 0};
    loaded[0].Load(x, at[0]);
    if (second) loaded[1].Load(x, at[1]);
    DT_UNROLL for (int r = 0; r < 2; ++r) {
      if (r == 1 && !second) break;
      float results[W] = {};
      DT_UNROLL for (int k = 0; k < W; ++k) {
        float element[N];
        loaded[r].Element(k, element);
        sums[k] = sums[k] + f(channel[k], element, &results[k]);
      }
      if (out != nullptr) StorePack<W>(results, out + at[r]);
    }
  }
}

// Returns what thread `thread` of `threads` adds up of a channel of plain images.
template <int W, class Sum, class T, int N, class F>
DT_DEVICE Sum SumOfThread(int64_t thread, int64_t threads, const ChannelRows& of, int64_t channel,
                          const F& f, const Operands<T, N>& x, T* out) {
  Sum sums[W] = {};
  SumPacks<W>(thread, threads, PacksOfPlanes<W>{of, channel}, f, x, out, sums);
  DT_UNROLL for (int k = 1; k < W; ++k) sums[0] = sums[0] + sums[k];
  return sums[0];
}

// Returns the sum of a tile's column j over the lanes, whose sums are in `sums`, a line for each thread.
template <int W, class Sum>
DT_DEVICE Sum OverLanes(const Tile<W>& of, const Sum (*sums)[W], unsigned j) {
  Sum all{};
  for (unsigned lane = 0; lane < of.lanes; ++lane) {
    all = all + sums[lane * of.tile + j / W][j % W];
  }
  return all;
}

template <int W>
bool FillsPacks(const ChannelRows& of) {
  return (of.plain() ? of.pixels : of.columns) % W == 0;
}

template <class T, int N>
bool Aligned(const Operands<T, N>& x, const T* y) {
  auto bits = reinterpret_cast<uintptr_t>(y);
  for (const T* const operand : x.at) bits |= reinterpret_cast<uintptr_t>(operand);
  return bits % 16 == 0;
}

#ifdef __CUDACC__

template <int W, class T, int N, class F>
__global__ void Map(ChannelRows of, F f, Operands<T, N> x, T* y) {
  MapThread<W>(blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x, of, f, x, y);
}

template <int W, class T, int N, class F>
__global__ void MapPlain(ChannelRows of, F f, Operands<T, N> x, T* y) {
  MapPlainThread<W>(blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x, of, f, x, y);
}

template <int W, class T, int N, class F>
void RunMap(CudaQueue& queue, const KernelLaunch&, unsigned blocks, const ChannelRows& of,
            const F& f, const Operands<T, N>& x, T* y) {
  if (of.plain()) {
    MapPlain<W><<<blocks, kThreads, 0, queue.stream()>>>(of, f, x, y);
  } else {
    Map<W><<<blocks, kThreads, 0, queue.stream()>>>(of, f, x, y);
  }
  CheckCall(cudaGetLastError(), "a kernel's launch");
}

// The block of a tile that ends last adds up the slices.  Two blocks fit in a multiprocessor (ColumnSums).
template <int W, class Sum, class T, int N, class F, class Done>
__global__ void __launch_bounds__(kThreads, 2)
    SumTiles(ChannelRows of, F f, Operands<T, N> x, T* out, Sum* partial, unsigned* finished,
             Done done) {
  __shared__ Sum sums[kThreads][W];
  __shared__ bool last;
  const Tile<W> tile(of.columns);
  const unsigned slices = gridDim.y, lane = threadIdx.x / tile.tile;
  const unsigned pack = blockIdx.x * tile.tile + threadIdx.x % tile.tile;
  Sum own[W] = {};
  if (lane < tile.lanes && pack < tile.packs) {
    SumPacks<W>(int64_t{blockIdx.y} * tile.lanes + lane, int64_t{slices} * tile.lanes,
                PacksOfChannels<W>{of, int64_t{pack} * W}, f, x, out, own);
  }
  DT_UNROLL for (int k = 0; k < W; ++k) sums[threadIdx.x][k] = own[k];
  __syncthreads();
  const unsigned first = blockIdx.x * tile.tile * W;
  const unsigned width = min(tile.tile * W, static_cast<unsigned>(of.columns) - first);
  if (threadIdx.x < width) {
    partial[blockIdx.y * of.columns + first + threadIdx.x] = OverLanes(tile, sums, threadIdx.x);
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(finished + blockIdx.x, 1u) == slices - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  const unsigned parts = kThreads / width, part = threadIdx.x / width, j = threadIdx.x % width;
  Sum some{};
  constexpr unsigned kAtOnce = 8;  // reads under way
  for (unsigned slice = part; part < parts && slice < slices; slice += kAtOnce * parts) {
    Sum read[kAtOnce] = {};
    DT_UNROLL for (unsigned k = 0; k < kAtOnce; ++k) {
      const unsigned at = slice + k * parts;
      if (at < slices) read[k] = loops::ReadFromL2(partial + at * of.columns + first + j);
    }
    DT_UNROLL for (unsigned k = 0; k < kAtOnce; ++k) some = some + read[k];
  }
  Sum* const joined = &sums[0][0];
  joined[threadIdx.x] = some;
  __syncthreads();
  if (part == 0) {
    Sum all{};
    for (unsigned p = 0; p < parts; ++p) all = all + joined[p * width + j];
    done(first + j, all);
  }
  if (threadIdx.x == 0) finished[blockIdx.x] = 0;
}

// Adds up the sums of a block's threads in pairs; sums[0] is then that of all.
template <class Sum>
__device__ void JoinThreads(Sum (&sums)[kThreads]) {
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] = sums[threadIdx.x] + sums[threadIdx.x + half];
  }
  __syncthreads();
}

// SumTiles for plain images: the tile of a block is one channel.
template <int W, class Sum, class T, int N, class F, class Done>
__global__ void __launch_bounds__(kThreads, 2)
    SumPlanes(ChannelRows of, F f, Operands<T, N> x, T* out, Sum* partial, unsigned* finished,
              Done done) {
  __shared__ Sum sums[kThreads];
  __shared__ bool last;
  const unsigned slices = gridDim.y;
  const int64_t channel = blockIdx.x;
  sums[threadIdx.x] = SumOfThread<W, Sum>(int64_t{blockIdx.y} * kThreads + threadIdx.x,
                                          int64_t{slices} * kThreads, of, channel, f, x, out);
  JoinThreads(sums);
  if (threadIdx.x == 0) {
    partial[blockIdx.y * of.columns + channel] = sums[0];
    __threadfence();
    last = atomicAdd(finished + channel, 1u) == slices - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  Sum some{};
  for (unsigned slice = threadIdx.x; slice < slices; slice += kThreads) {
    some = some + loops::ReadFromL2(partial + slice * of.columns + channel);
  }
  sums[threadIdx.x] = some;
  JoinThreads(sums);
  if (threadIdx.x > 0) return;
  done(channel, sums[0]);
  finished[channel] = 0;
}

template <int W, class Sum, class T, int N, class F, class Done>
void RunSums(CudaQueue& queue, const KernelLaunch&, const ChannelRows& of, unsigned tiles,
             unsigned slices, const F& f, const Operands<T, N>& x, T* out, Sum* partial,
             unsigned* finished, const Done& done) {
  if (of.plain()) {
    SumPlanes<W><<<dim3(tiles, slices), kThreads, 0, queue.stream()>>>(of, f, x, out, partial,
                                                                       finished, done);
    return CheckCall(cudaGetLastError(), "a kernel's launch");
  }
  SumTiles<W><<<dim3(tiles, slices), kThreads, 0, queue.stream()>>>(of, f, x, out, partial,
                                                                    finished, done);
  CheckCall(cudaGetLastError(), "a kernel's launch");
}

#else

template <int W, class T, int N, class F>
void RunMap(CudaQueue& queue, const KernelLaunch& launch, unsigned, const ChannelRows& of,
            const F& f, const Operands<T, N>& x, T* y) {
  // A few threads, so that each has several rows or packs; with channels last one of them has none.
  const unsigned threads = static_cast<unsigned>(of.columns / W) * 3 + 1;
  loops::InStream(queue, launch, [=] {
    for (unsigned thread = 0; thread < threads; ++thread) {
      if (of.plain()) {
        MapPlainThread<W>(thread, threads, of, f, x, y);
      } else {
        MapThread<W>(thread, threads, of, f, x, y);
      }
    }
  });
}

// Does what SumPlanes does; it adds the threads' sums one after the other, not in pairs.
template <int W, class Sum, class T, int N, class F, class Done>
void SumPlanesHere(const ChannelRows& of, unsigned slices, const F& f, const Operands<T, N>& x,
                   T* out, Sum* partial, const unsigned* finished, const Done& done) {
  for (int64_t channel = 0; channel < of.columns; ++channel) {
    Sum all{};
    for (unsigned slice = 0; slice < slices; ++slice) {
      Sum sum{};
      for (unsigned thread = 0; thread < kThreads; ++thread) {
        sum = sum + SumOfThread<W, Sum>(int64_t{slice} * kThreads + thread,
                                        int64_t{slices} * kThreads, of, channel, f, x, out);
      }
      partial[slice * of.columns + channel] = sum;
      all = all + sum;
    }
    done(channel, all);
    if (finished[channel] != 0) std::abort();
  }
}

template <int W, class Sum, class T, int N, class F, class Done>
void RunSums(CudaQueue& queue, const KernelLaunch& launch, const ChannelRows& of, unsigned tiles,
             unsigned slices, const F& f, const Operands<T, N>& x, T* out, Sum* partial,
             unsigned* finished, const Done& done) {
  loops::InStream(queue, launch, [=] {
    if (of.plain()) return SumPlanesHere<W>(of, slices, f, x, out, partial, finished, done);
    const Tile<W> tile(of.columns);
    for (unsigned block = 0; block < tiles; ++block) {
      const unsigned first = block * tile.tile * W;
      const unsigned width = std::min(tile.tile * W, static_cast<unsigned>(of.columns) - first);
      for (unsigned slice = 0; slice < slices; ++slice) {
        Sum sums[kThreads][W] = {};
        for (unsigned thread = 0; thread < tile.lanes * tile.tile; ++thread) {
          const unsigned pack = block * tile.tile + thread % tile.tile;
          if (pack >= tile.packs) continue;
          SumPacks<W>(int64_t{slice} * tile.lanes + thread / tile.tile,
                      int64_t{slices} * tile.lanes, PacksOfChannels<W>{of, int64_t{pack} * W}, f, x,
                      out, sums[thread]);
        }
        for (unsigned j = 0; j < width; ++j) {
          partial[slice * of.columns + first + j] = OverLanes(tile, sums, j);
        }
      }
      for (unsigned j = 0; j < width; ++j) {
        Sum all{};
        for (unsigned slice = 0; slice < slices; ++slice) {
          all = all + partial[slice * of.columns + first + j];
        }
        done(first + j, all);
      }
      if (finished[block] != 0) std::abort();
    }
  });
}

#endif

}  // namespace channels

// y[i] = f(f.Of(c), {x[0][i], x[1][i], ...}) for every element i, of channel c.  y may be one of the operands.
template <class T, int N, class F>
void MapChannels(CudaQueue& queue, const KernelLaunch& launch, const ChannelRows& of, const F& f,
                 const Operands<T, N>& x, T* y) {
  if (of.rows == 0 || of.columns == 0) return;
  constexpr int kWidth = ElementsOfPack(sizeof(T));
  const bool packs = channels::FillsPacks<kWidth>(of) && channels::Aligned(x, y);
  const int64_t threads = of.rows * of.columns / (packs ? kWidth : 1);
  // Enough for all multiprocessors, and few enough that a thread has several rows.
  constexpr int64_t kBlocks = 1056;
  const int64_t fewest = of.plain() ? 1
                                    : (of.columns / (packs ? kWidth : 1) + channels::kThreads - 1) /
                                          channels::kThreads;
  const auto blocks = static_cast<unsigned>(
      std::max(fewest, std::min(kBlocks, (threads + channels::kThreads - 1) / channels::kThreads)));
  if (packs) {
    channels::RunMap<kWidth>(queue, launch, blocks, of, f, x, y);
  } else {
    channels::RunMap<1>(queue, launch, blocks, of, f, x, y);
  }
}

// The same for `count` elements whose channel does not matter.
template <class T, int N, class F>
void MapElements(CudaQueue& queue, const KernelLaunch& launch, int64_t count, const F& f,
                 const Operands<T, N>& x, T* y) {
  constexpr int64_t kWidth = ElementsOfPack(sizeof(T));
  const int64_t columns = count % kWidth == 0 ? kWidth : 1;
  MapChannels(queue, launch, {count / columns, columns}, f, x, y);
}

// For MapElements.
struct AnyChannel {
  struct Channel {};
  DT_DEVICE Channel Of(int64_t) const { return {}; }
};

// Calls done(c, sum) for every channel c, with the sum of f(f.Of(c), {x[0][i], ...}, &side[i]) over its elements i, in an
// order that depends on `sums` and on whether the addresses are multiples of 16.  Sum{} must be the neutral element of the
// addition; `partial` is scratch memory for sums.partial_sums() values of Sum.  `launch` names what f touches, `side`
// included, which may be null.
template <class Sum, class T, int N, class F, class Done>
void SumChannels(CudaQueue& queue, const KernelLaunch& launch,
                 std::initializer_list<Access> done_accesses, const ColumnSums& sums, Sum* partial,
                 const F& f, const Operands<T, N>& x, T* side, const Done& done) {
  constexpr int kWidth = ElementsOfPack(sizeof(T));
  unsigned* const finished = sums.finished();
  const KernelLaunch all = {launch.name,
                            launch.accesses,
                            done_accesses,
                            {Writes(partial, sums.partial_sums()),
                             Reads(partial, sums.partial_sums()), Updates(finished, sums.tiles())}};
  const ChannelRows& of = sums.of();
  const auto slices = static_cast<unsigned>(sums.slices());
  if (channels::FillsPacks<kWidth>(of) && channels::Aligned(x, side)) {
    channels::RunSums<kWidth>(queue, all, of, static_cast<unsigned>(sums.TilesOf(kWidth)), slices,
                              f, x, side, partial, finished, done);
  } else {
    channels::RunSums<1>(queue, all, of, static_cast<unsigned>(sums.TilesOf(1)), slices, f, x, side,
                         partial, finished, done);
  }
}

}  // namespace dtrain
