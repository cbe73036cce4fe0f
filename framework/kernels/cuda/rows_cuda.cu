#include "framework/kernels/cuda/rows.h"
#include "framework/nn/tokens.h"

namespace dtrain {
namespace {

// next[i]: the next place with the token of place i, -1 behind the last one.  first[i]: none is
// before it.
void LinkEqualTokens(CudaQueue& queue, const int32_t* tokens, int64_t count, int32_t* next,
                     int32_t* first) {
  ForEach(queue, count, [=] DT_DEVICE(int64_t i) {
    int64_t behind = i + 1, before = i - 1;
    while (behind < count && tokens[behind] != tokens[i]) ++behind;
    while (before >= 0 && tokens[before] != tokens[i]) --before;
    next[i] = behind < count ? static_cast<int32_t>(behind) : -1;
    first[i] = before < 0;
  });
}

}  // namespace

void ZeroFloats(CudaQueue& queue, float* data, int64_t count) {
  DT_CUDA(cudaMemsetAsync, data, 0, static_cast<size_t>(count) * sizeof(float), queue.stream());
}

void FillRows(CudaQueue& queue, const float* values, const DeviceMatrix& to) {
  ForEach(queue, to.rows * to.columns, [=] DT_DEVICE(int64_t at) {
    const int64_t column = at % to.columns;
    to.data[at / to.columns * to.stride + column] = values[column];
  });
}

void SumOverRows(CudaQueue& queue, const DeviceMatrix& x, bool accumulate, float* sum) {
  ForEachRow(
      queue, x.columns, x.rows, 0.0f,
      [=] DT_DEVICE(int64_t column, int64_t row) { return x.data[row * x.stride + column]; },
      [=] DT_DEVICE(float a, float b) { return a + b; },
      [=] DT_DEVICE(int64_t column, float total) {
        sum[column] = accumulate ? sum[column] + total : total;
      });
}

void FindLengths(CudaQueue& queue, const int32_t* tokens, int64_t sentences, int64_t steps,
                 int64_t pad, int32_t* lengths) {
  ForEach(queue, sentences, [=] DT_DEVICE(int64_t n) {
    lengths[n] = static_cast<int32_t>(SentenceLength(tokens + n * steps, steps, pad));
  });
}

void EmbeddingGradient(CudaQueue& queue, const int32_t* tokens, const DeviceMatrix& dy,
                       int64_t vocabulary, bool accumulate, float* dw, int32_t* room) {
  int32_t *const next = room, *const first = room + dy.rows;
  LinkEqualTokens(queue, tokens, dy.rows, next, first);
  if (!accumulate) ZeroFloats(queue, dw, vocabulary * dy.columns);
  ForEach(queue, dy.rows * dy.columns, [=] DT_DEVICE(int64_t at) {
    const int64_t begin = at / dy.columns, j = at % dy.columns, token = tokens[begin];
    if (first[begin] == 0 || token < 0 || token >= vocabulary) return;
    float sum = dw[token * dy.columns + j];
    for (int64_t i = begin; i >= 0; i = next[i]) sum += dy.data[i * dy.stride + j];
    dw[token * dy.columns + j] = sum;
  });
}

}  // namespace dtrain
