#include "framework/kernels/cuda/images.h"

#include "framework/core/check.h"
#include "framework/kernels/cuda/channel_loops.h"
#include "framework/kernels/cuda/element_types.h"

namespace dtrain {

namespace {

// Each thread finds the element of `from` that belongs at position i of `to`.
template <class From, class To>
void ReorderAs(CudaQueue& queue, const Tensor& from, const Tensor& to) {
  const From* const x = from.as<const From>();
  To* const y = to.as<To>();
  const int64_t count = from.shape.count();
  if (from.format == to.format) {
    ForEach(queue, {"convert", {Reads(x, count), Writes(y, count)}}, count,
            [=] DT_DEVICE(int64_t i) { y[i] = static_cast<To>(static_cast<float>(x[i])); });
    return;
  }
  const int64_t channels = from.shape[1], pixels = from.shape.CountFrom(2);
  const bool to_last = to.format == Format::kChannelsLast;
  ForEach(queue, {"reorder images", {Reads(x, count), Writes(y, count)}}, count,
          [=] DT_DEVICE(int64_t i) {
            const int64_t inner = to_last ? channels : pixels, outer = to_last ? pixels : channels;
            const int64_t image = i / (inner * outer), at = i % (inner * outer);
            const From value = x[image * inner * outer + at % inner * outer + at / inner];
            y[i] = static_cast<To>(static_cast<float>(value));
          });
}

struct Elements : AnyChannel {
  DT_DEVICE double operator()(const Channel&, const float* x, float*) const { return x[0]; }
};

template <class T, class Sum>
void SumOverRowsAs(CudaQueue& queue, const ColumnSums& sums, const T* x, double* partial,
                   bool accumulate, Sum* sum) {
  const int64_t columns = sums.columns();
  SumChannels(queue, {"sum over rows", {Reads(x, sums.rows() * columns)}},
              {Stores(sum, columns, accumulate)}, sums, partial, Elements{}, Operands<T, 1>{x},
              static_cast<T*>(nullptr), [=] DT_DEVICE(int64_t c, double all) {
                const auto added = static_cast<float>(all);
                sum[c] = static_cast<Sum>(accumulate ? static_cast<float>(sum[c]) + added : added);
              });
}

struct Biased {
  const float* bias;  // null: none
  bool relu;

  using Channel = float;
  DT_DEVICE Channel Of(int64_t c) const { return bias == nullptr ? 0 : bias[c]; }
  DT_DEVICE float operator()(float by, const float* y) const {
    const float value = bias == nullptr ? y[0] : y[0] + by;
    return relu && value < 0 ? 0 : value;
  }
};

struct Masked : AnyChannel {
  DT_DEVICE float operator()(const Channel&, const float* of) const {
    return of[0] > 0 ? of[1] : 0;
  }
};

}  // namespace

void Reorder(CudaQueue& queue, const Tensor& from, const Tensor& to) {
  if (from.form() == to.form()) {
    const size_t bytes = static_cast<size_t>(from.shape.count()) * SizeOf(from.dtype);
    return queue.Copy(to.data, from.data, bytes);
  }
  WithElementType(from.dtype, [&]<class From>() {
    if (to.dtype == from.dtype) {
      ReorderAs<From, From>(queue, from, to);
    } else if (to.dtype == DType::kF32) {
      ReorderAs<From, float>(queue, from, to);
    } else {
      DT_CHECK(from.dtype == DType::kF32) << "two types of 16 bits";
      WithElementType(to.dtype, [&]<class To>() { ReorderAs<float, To>(queue, from, to); });
    }
  });
}

void SumOverRows(CudaQueue& queue, const ColumnSums& sums, const Tensor& x, double* partial,
                 bool accumulate, const Tensor& sum) {
  WithElementType(x.dtype, [&]<class T>() {
    if (sum.dtype == DType::kF32) {
      SumOverRowsAs(queue, sums, x.as<const T>(), partial, accumulate, sum.f32());
    } else {
      SumOverRowsAs(queue, sums, x.as<const T>(), partial, accumulate, sum.as<T>());
    }
  });
}

void AddBias(CudaQueue& queue, const Tensor& y, const ChannelRows& of, const float* bias,
             bool relu) {
  if (bias == nullptr && !relu) return;
  WithElementType(y.dtype, [&]<class T>() {
    T* const to = y.as<T>();
    MapChannels(queue, {"add bias", {Reads(bias, of.columns), Updates(to, y.shape.count())}}, of,
                Biased{bias, relu}, Operands<T, 1>{to}, to);
  });
}

void MaskGradient(CudaQueue& queue, const Tensor& y, const Tensor& dy) {
  const int64_t count = y.shape.count();
  WithElementType(y.dtype, [&]<class T>() {
    T *const of = y.as<T>(), *const to = dy.as<T>();
    MapElements(queue, {"mask gradient", {Reads(of, count), Updates(to, count)}}, count, Masked{},
                Operands<T, 2>{of, to}, to);
  });
}

}  // namespace dtrain
