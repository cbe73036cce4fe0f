#include "framework/kernels/cuda/embedding_gradient.h"

#include <algorithm>
#include <bit>

#include "framework/kernels/cuda/sort.h"

namespace dtrain {
namespace {

// Tokens outside the vocabulary get the key `vocabulary`, which sorts last.
void WritePairs(CudaQueue& queue, const int32_t* tokens, int64_t count, int64_t vocabulary,
                uint32_t* keys, int32_t* places) {
  ForEach(
      queue,
      {"sort keys of tokens", {Reads(tokens, count), Writes(keys, count), Writes(places, count)}},
      count, [=] DT_DEVICE(int64_t i) {
        const bool known = tokens[i] >= 0 && tokens[i] < vocabulary;
        keys[i] = static_cast<uint32_t>(known ? tokens[i] : vocabulary);
        places[i] = static_cast<int32_t>(i);
      });
}

// The thread at the first position of a key adds up the key's whole run; threads at other positions do nothing.
void AddRuns(CudaQueue& queue, const PairsToSort& pairs, const DeviceMatrix& dy, int64_t vocabulary,
             bool accumulate, float* dw) {
  const uint32_t* const keys = pairs.sorted_keys;
  const int32_t* const places = pairs.sorted_values;
  const float* const from = dy.data;
  const int64_t count = dy.rows, size = dy.columns, stride = dy.stride;
  const Access whole = Stores(dw, vocabulary * size, accumulate);
  ForEach(queue,
          {"embedding gradient",
           {Reads(keys, count), Reads(places, count), Reads(dy),
            whole.Only(std::min(count, vocabulary) * size)}},
          count * size, [=] DT_DEVICE(int64_t i) {
            const int64_t first = i / size, j = i % size;
            const uint32_t key = keys[first];
            if (key == vocabulary || (first > 0 && keys[first - 1] == key)) return;
            // Find the end of the run first: in a loop with a known count, loads need not wait for each other.
            int64_t end = first + 1;
            for (int64_t behind = count; end < behind;) {
              const int64_t middle = (end + behind) / 2;
              if (keys[middle] == key) {
                end = middle + 1;
              } else {
                behind = middle;
              }
            }
            float& to = dw[key * size + j];
            float sum = accumulate ? to : 0;
            for (int64_t k = first; k < end; ++k) sum += from[places[k] * stride + j];
            to = sum;
          });
}

}  // namespace

EmbeddingGradientCuda::EmbeddingGradientCuda(int64_t tokens, int64_t vocabulary, int64_t size)
    : tokens_(tokens),
      vocabulary_(vocabulary),
      size_(size),
      keys_(room_.Take(tokens)),
      places_(room_.Take(tokens)),
      sorted_keys_(room_.Take(tokens)),
      sorted_places_(room_.Take(tokens)),
      bits_(static_cast<int>(std::bit_width(static_cast<uint64_t>(vocabulary)))),
      sort_bytes_(SortScratchBytes(static_cast<int>(tokens), bits_)) {}

void EmbeddingGradientCuda::Write(CudaQueue& queue, const int32_t* tokens, const DeviceMatrix& dy,
                                  bool accumulate, float* dw, void* scratch) const {
  auto* const words = static_cast<uint32_t*>(scratch);
  auto* const numbers = static_cast<int32_t*>(scratch);
  WritePairs(queue, tokens, tokens_, vocabulary_, words + keys_, numbers + places_);
  const PairsToSort pairs = {.count = static_cast<int>(tokens_),
                             .bits = bits_,
                             .keys = words + keys_,
                             .values = numbers + places_,
                             .sorted_keys = words + sorted_keys_,
                             .sorted_values = numbers + sorted_places_};
  SortPairs(queue, pairs, static_cast<char*>(scratch) + room_.bytes(), sort_bytes_);
  if (!accumulate) {
    queue.Zero(dw, static_cast<size_t>(vocabulary_ * size_) * sizeof(float));
  }
  AddRuns(queue, pairs, dy, vocabulary_, accumulate, dw);
}

}  // namespace dtrain
