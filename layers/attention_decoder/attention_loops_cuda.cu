#include "layers/attention_decoder/attention_loops_cuda.h"

#include <algorithm>
#include <cmath>

namespace dtrain {
namespace {

// The access reads `count` of `values` for each row's sentence.
template <class T>
Access ReadsOfSentences(const AttentionRows& rows, const T* values, int64_t count) {
  static_assert(sizeof(T) == 4);
  return Reads(values, rows.sentences * count)
      .Only(std::min(rows.sentences, rows.weights.rows) * count);
}
Access ReadsLengths(const AttentionRows& rows) { return ReadsOfSentences(rows, rows.lengths, 1); }
Access ReadsSentence(const AttentionRows& rows) { return Reads(rows.sentence, rows.weights.rows); }

// Sums the exponentials of the first length_of(row) elements of each row.
template <class LengthOf>
void SumExp(CudaQueue& queue, const KernelLaunch& launch, const DeviceMatrix& x, LengthOf length_of,
            SoftmaxSum* sums) {
  const SoftmaxSum nothing = {-INFINITY, 0};
  ForEachRow(
      queue, launch, x.rows, x.columns, nothing,
      [=] DT_DEVICE(int64_t row, int64_t j) {
        return j < length_of(row) ? SoftmaxSum{x.data[row * x.stride + j], 1} : nothing;
      },
      [=] DT_DEVICE(const SoftmaxSum& a, const SoftmaxSum& b) { return Joined(a, b); },
      [=] DT_DEVICE(int64_t row, const SoftmaxSum& sum) { sums[row] = sum; });
}

// Writes the scores to rows.weights.
void Scores(CudaQueue& queue, const AttentionRows& rows) {
  const int64_t S = rows.weights.columns, A = rows.query.columns;
  ForEachRow(
      queue,
      {"attention scores",
       {ReadsOfSentences(rows, rows.keys, S * A), Reads(rows.v, A), ReadsLengths(rows),
        ReadsSentence(rows), Reads(rows.query), Writes(rows.weights)}},
      rows.weights.rows * S, A, 0.0f,
      [=] DT_DEVICE(int64_t at, int64_t i) {
        const int64_t row = at / S, j = at % S;
        if (j >= rows.LengthOf(row)) return 0.0f;
        const float key = rows.keys[rows.PlaceOf(row, j) * A + i];
        return rows.v[i] * tanhf(key + rows.query.data[row * rows.query.stride + i]);
      },
      [=] DT_DEVICE(float a, float b) { return a + b; },
      [=] DT_DEVICE(int64_t at, float score) {
        rows.weights.data[at / S * rows.weights.stride + at % S] = score;
      });
}

// Replaces the scores in rows.weights by their softmax.
void Weights(CudaQueue& queue, const AttentionRows& rows, SoftmaxSum* sums) {
  SumExp(
      queue,
      {"attention sums",
       {ReadsLengths(rows), ReadsSentence(rows), Reads(rows.weights),
        Writes(sums, rows.weights.rows)}},
      rows.weights, [=] DT_DEVICE(int64_t row) { return rows.LengthOf(row); }, sums);
  const int64_t S = rows.weights.columns;
  ForEach(queue,
          {"attention weights",
           {ReadsLengths(rows), ReadsSentence(rows), Reads(sums, rows.weights.rows),
            Updates(rows.weights)}},
          rows.weights.rows * S, [=] DT_DEVICE(int64_t at) {
            const int64_t row = at / S, j = at % S;
            float& weight = rows.weights.data[row * rows.weights.stride + j];
            const SoftmaxSum& sum = sums[row];
            weight = j < rows.LengthOf(row)
                         ? expf(weight - sum.largest) / static_cast<float>(sum.sum)
                         : 0;
          });
}

void Contexts(CudaQueue& queue, const AttentionRows& rows, const DeviceMatrix& context) {
  const int64_t S = rows.weights.columns, C = context.columns;
  const RoundedCopy copy = CopyOf(queue, context);
  ForEach(queue,
          {"attention contexts",
           {ReadsOfSentences(rows, rows.values, S * C), ReadsLengths(rows), ReadsSentence(rows),
            Reads(rows.weights), Writes(context), WritesCopy(context)}},
          context.rows * C, [=] DT_DEVICE(int64_t at) {
            const int64_t row = at / C, i = at % C, length = rows.LengthOf(row);
            const float* const weights = rows.weights.data + row * rows.weights.stride;
            const float* const value = rows.values + rows.PlaceOf(row, 0) * C + i;
            float sum = 0;
            for (int64_t j = 0; j < length; ++j) sum += weights[j] * value[j * C];
            context.data[row * context.stride + i] = sum;
            copy.Store(row * context.stride + i, sum);
          });
}

// Writes the gradients by the weights to `room`.
void WeightGradients(CudaQueue& queue, const AttentionRows& rows, const DeviceMatrix& dcontext,
                     float* room) {
  const int64_t S = rows.weights.columns, C = dcontext.columns;
  ForEachRow(
      queue,
      {"attention weight gradients",
       {ReadsOfSentences(rows, rows.values, S * C), ReadsLengths(rows), ReadsSentence(rows),
        Reads(dcontext), Writes(room, dcontext.rows * S)}},
      dcontext.rows * S, C, 0.0f,
      [=] DT_DEVICE(int64_t at, int64_t i) {
        const int64_t row = at / S, j = at % S;
        if (j >= rows.LengthOf(row)) return 0.0f;
        const float value = rows.values[rows.PlaceOf(row, j) * C + i];
        return dcontext.data[row * dcontext.stride + i] * value;
      },
      [=] DT_DEVICE(float a, float b) { return a + b; },
      [=] DT_DEVICE(int64_t at, float sum) { room[at] = sum; });
}

struct Largest {
  float value;
  int64_t at;
};

}  // namespace

void Attend(CudaQueue& queue, const AttentionRows& rows, SoftmaxSum* sums,
            const DeviceMatrix& context) {
  Scores(queue, rows);
  Weights(queue, rows, sums);
  Contexts(queue, rows, context);
}

void AttendBackward(CudaQueue& queue, const AttentionRows& rows, const DeviceMatrix& dcontext,
                    float* room, float* dkeys, const DeviceMatrix& dquery, float* dv) {
  WeightGradients(queue, rows, dcontext, room);
  const int64_t S = rows.weights.columns, A = rows.query.columns;
  const RoundedCopy copy = CopyOf(queue, dquery);
  ForEach(queue,
          {"attention gradients",
           {Reads(rows.keys, dquery.rows * S * A), Reads(rows.v, A), ReadsLengths(rows),
            Reads(rows.query), Reads(rows.weights), Reads(room, dquery.rows * S),
            Updates(dkeys, dquery.rows * S * A), Writes(dquery), WritesCopy(dquery),
            Updates(dv, dquery.rows * A)}},
          dquery.rows * A, [=] DT_DEVICE(int64_t at) {
            const int64_t n = at / A, i = at % A, length = rows.LengthOf(n);
            const float* const weights = rows.weights.data + n * rows.weights.stride;
            const float* const dweights = room + n * S;
            float mean = 0, sum = 0, sum_v = 0;
            for (int64_t j = 0; j < length; ++j) mean += weights[j] * dweights[j];
            const float query = rows.query.data[n * rows.query.stride + i];
            for (int64_t j = 0; j < length; ++j) {
              const int64_t place = (n * S + j) * A + i;
              const float dscore = weights[j] * (dweights[j] - mean);
              const float energy = tanhf(rows.keys[place] + query);
              const float denergy = dscore * rows.v[i] * (1 - energy * energy);
              sum_v += dscore * energy;
              sum += denergy;
              dkeys[place] += denergy;
            }
            dquery.data[n * dquery.stride + i] = sum;
            copy.Store(n * dquery.stride + i, sum);
            dv[at] += sum_v;
          });
}

void ChooseLargest(CudaQueue& queue, const DeviceMatrix& scores, const int32_t* forced,
                   int32_t* tokens, int64_t apart) {
  ForEachRow(
      queue,
      {"largest scores",
       {Reads(scores), Reads(forced, 1),
        Writes(tokens, 1).Repeated(scores.rows, static_cast<size_t>(apart) * sizeof(*tokens))}},
      scores.rows, scores.columns, Largest{-INFINITY, 0},
      [=] DT_DEVICE(int64_t row, int64_t i) {
        if (forced != nullptr && *forced != 0) return Largest{-INFINITY, 0};  // reads no score
        return Largest{scores.data[row * scores.stride + i], i};
      },
      [=] DT_DEVICE(const Largest& a, const Largest& b) {
        return b.value > a.value || (b.value == a.value && b.at < a.at) ? b : a;
      },
      [=] DT_DEVICE(int64_t row, const Largest& largest) {
        if (forced == nullptr || *forced == 0)
          tokens[row * apart] = static_cast<int32_t>(largest.at);
      });
}

void LogSoftmax(CudaQueue& queue, const DeviceMatrix& x, SoftmaxSum* sums) {
  SumExp(
      queue, {"log softmax sums", {Reads(x), Writes(sums, x.rows)}}, x,
      [=] DT_DEVICE(int64_t) { return x.columns; }, sums);
  ForEach(queue, {"log softmax", {Reads(sums, x.rows), Updates(x)}}, x.rows * x.columns,
          [=] DT_DEVICE(int64_t at) {
            const int64_t row = at / x.columns;
            float& value = x.data[row * x.stride + at % x.columns];
            value = value - sums[row].largest - static_cast<float>(log(sums[row].sum));
          });
}

}  // namespace dtrain
