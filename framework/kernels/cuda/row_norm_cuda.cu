// One block per row computes the row's mean and deviation, and in the backward pass its two sums; one thread per
// element does the rest.  The parameters' gradients are column sums, or, if a channel has several pixels, one block
// computes each parameter's.
#include "framework/kernels/cuda/row_norm.h"

#include <cmath>

#include "framework/kernels/cuda/column_sums.h"
#include "framework/nn/row_norm_layer.h"

namespace dtrain {
namespace {

// The saved statistics of one row: its mean and 1 / deviation.
struct NormRow {
  float mean, inverse;
};

// The terms of one row in dx = inverse d - bias - (x - mean) scale.
struct FromSums {
  float bias, scale;
};

struct Batch {
  NormRows rows;
  const float* x;
  const float *weight, *bias;  // null: 1 and 0
  NormRow* kept;
  double eps;

  DT_DEVICE float Weight(int64_t i) const {
    return weight == nullptr ? 1 : weight[rows.ParameterOf(i)];
  }
  DT_DEVICE float Bias(int64_t i) const { return bias == nullptr ? 0 : bias[rows.ParameterOf(i)]; }
  DT_DEVICE float Centred(int64_t i) const { return x[i] - kept[rows.RowOf(i)].mean; }
  DT_DEVICE float Inverse(int64_t i) const { return kept[rows.RowOf(i)].inverse; }
};

void FindRows(CudaQueue& queue, const Batch& batch) {
  const int64_t size = batch.rows.size();
  ForEachRow(
      queue,
      {"norm statistics",
       {Reads(batch.x, batch.rows.rows * size), Writes(batch.kept, batch.rows.rows)}},
      batch.rows.rows, size, SumPair{0, 0},
      [=] DT_DEVICE(int64_t row, int64_t i) {
        const double value = batch.x[row * size + i];
        return SumPair{value, value * value};
      },
      [] DT_DEVICE(const SumPair& a, const SumPair& b) { return a + b; },
      [=] DT_DEVICE(int64_t row, const SumPair& sums) {
        const double mean = sums.first / static_cast<double>(size);
        const double variance = sums.second / static_cast<double>(size) - mean * mean;
        const double inverse = 1 / std::sqrt((variance < 0 ? 0 : variance) + batch.eps);
        batch.kept[row] = {static_cast<float>(mean), static_cast<float>(inverse)};
      });
}

void Normalise(CudaQueue& queue, const Batch& batch, float* y) {
  const int64_t count = batch.rows.rows * batch.rows.size(), parameters = batch.rows.parameters();
  ForEach(queue,
          {"norm",
           {Reads(batch.x, count), Reads(batch.kept, batch.rows.rows),
            Reads(batch.weight, parameters), Reads(batch.bias, parameters), Writes(y, count)}},
          count, [=] DT_DEVICE(int64_t i) {
            y[i] = batch.Centred(i) * batch.Inverse(i) * batch.Weight(i) + batch.Bias(i);
          });
}

// Sums d = weight dy and d (x - mean) over each row, and writes the terms of dx that follow from them.
void SumRows(CudaQueue& queue, const Batch& batch, const float* dy, FromSums* from) {
  const int64_t rows = batch.rows.rows, size = batch.rows.size();
  ForEachRow(
      queue,
      {"norm gradient sums",
       {Reads(batch.x, rows * size), Reads(dy, rows * size), Reads(batch.kept, rows),
        Reads(batch.weight, batch.rows.parameters()), Writes(from, rows)}},
      rows, size, SumPair{0, 0},
      [=] DT_DEVICE(int64_t row, int64_t column) {
        const int64_t i = row * size + column;
        const double d = static_cast<double>(dy[i]) * batch.Weight(i);
        return SumPair{d, d * batch.Centred(i)};
      },
      [] DT_DEVICE(const SumPair& a, const SumPair& b) { return a + b; },
      [=] DT_DEVICE(int64_t row, const SumPair& sums) {
        const double inverse = batch.kept[row].inverse;
        const double share = inverse / static_cast<double>(size);
        from[row] = {static_cast<float>(share * sums.first),
                     static_cast<float>(share * inverse * inverse * sums.second)};
      });
}

void FindGradients(CudaQueue& queue, const Batch& batch, const float* dy, const FromSums* from,
                   float* dx) {
  const int64_t rows = batch.rows.rows, count = rows * batch.rows.size();
  ForEach(queue,
          {"norm gradient",
           {Reads(batch.x, count), Reads(dy, count), Reads(batch.kept, rows),
            Reads(batch.weight, batch.rows.parameters()), Reads(from, rows), Writes(dx, count)}},
          count, [=] DT_DEVICE(int64_t i) {
            const FromSums by = from[batch.rows.RowOf(i)];
            dx[i] =
                batch.Inverse(i) * batch.Weight(i) * dy[i] - by.bias - batch.Centred(i) * by.scale;
          });
}

// The destination of the parameters' gradients; they are added to it if `accumulate`.
struct ParamGradients {
  float *weight, *bias;
  bool accumulate;

  DT_DEVICE void Store(int64_t parameter, const SumPair& sums) const {
    const auto dweight = static_cast<float>(sums.first), dbias = static_cast<float>(sums.second);
    weight[parameter] = accumulate ? weight[parameter] + dweight : dweight;
    bias[parameter] = accumulate ? bias[parameter] + dbias : dbias;
  }
};

// Returns {dy z, dy} of one element, where z = (x - mean) / deviation.
DT_DEVICE SumPair TermsAt(const Batch& batch, const float* dy, int64_t i) {
  return {static_cast<double>(dy[i]) * (batch.Centred(i) * batch.Inverse(i)),
          static_cast<double>(dy[i])};
}

// Computes the parameters' gradients if a channel has one pixel: they are column sums of a matrix.
void SumSamples(CudaQueue& queue, const Batch& batch, const ColumnSums& columns, const float* dy,
                SumPair* partial, const ParamGradients& to) {
  const int64_t parameters = batch.rows.parameters(), count = columns.rows() * parameters;
  SumColumns(
      queue,
      {"norm parameter gradients",
       {Reads(batch.x, count), Reads(dy, count), Reads(batch.kept, batch.rows.rows)}},
      {Stores(to.weight, parameters, to.accumulate), Stores(to.bias, parameters, to.accumulate)},
      columns, partial,
      [=] DT_DEVICE(int64_t row, int64_t column) -> SumPair {
        return TermsAt(batch, dy, row * parameters + column);
      },
      [=] DT_DEVICE(int64_t column, const SumPair& sums) { to.Store(column, sums); });
}

void SumPlanes(CudaQueue& queue, const Batch& batch, int64_t samples, const float* dy,
               const ParamGradients& to) {
  const int64_t pixels = batch.rows.pixels, parameters = batch.rows.parameters();
  const int64_t count = samples * pixels * parameters;
  ForEachRow(
      queue,
      {"norm parameter gradients",
       {Reads(batch.x, count), Reads(dy, count), Reads(batch.kept, batch.rows.rows),
        Stores(to.weight, parameters, to.accumulate), Stores(to.bias, parameters, to.accumulate)}},
      parameters, samples * pixels, SumPair{0, 0},
      [=] DT_DEVICE(int64_t parameter, int64_t at) {
        const int64_t plane = at / pixels * parameters + parameter;
        return TermsAt(batch, dy, plane * pixels + at % pixels);
      },
      [] DT_DEVICE(const SumPair& a, const SumPair& b) { return a + b; },
      [=] DT_DEVICE(int64_t parameter, const SumPair& sums) { to.Store(parameter, sums); });
}

class RowNormCuda : public Kernel {
 public:
  explicit RowNormCuda(const KernelRequest& request)
      : queue_(QueueOf(request.device)),
        layer_(static_cast<const RowNormLayer&>(*request.layer)),
        rows_(layer_.RowsOf(request.inputs[0])),
        samples_(rows_.rows / rows_.groups),
        training_(request.mode == Mode::kTrain),
        columns_(request.device, {samples_, rows_.parameters()}) {
    FloatRoom& rows = training_ ? saved_ : scratch_;
    kept_ = rows.Take(2 * rows_.rows);
    if (!training_) return;
    from_ = scratch_.Take(2 * rows_.rows);
    if (rows_.pixels == 1) partial_ = scratch_.Take(4 * columns_.partial_sums());
  }

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    needs.saved_bytes = saved_.bytes();
    needs.scratch_bytes = scratch_.bytes();
    needs.backward_reads_inputs = true;
    needs.forward_in_place = !training_;
    needs.backward_in_place = true;
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    const Batch batch = BatchOf(args);
    FindRows(queue_, batch);
    Normalise(queue_, batch, args.outputs[0].f32());
  }

  // The gradients of the parameters are computed first, because dx may overwrite dy.
  void Backward(const KernelArgs& args) override {
    const Batch batch = BatchOf(args);
    const float* const dy = args.output_gradients[0].f32();
    if (layer_.affine()) {
      const ParamGradients to = {args.param_gradients[0].f32(), args.param_gradients[1].f32(),
                                 args.accumulate};
      if (rows_.pixels == 1) {
        SumSamples(queue_, batch, columns_, dy, At<SumPair>(args.scratch, partial_), to);
      } else {
        SumPlanes(queue_, batch, samples_, dy, to);
      }
    }
    float* const dx = args.input_gradients[0].f32();
    if (dx == nullptr) return;
    auto* const from = At<FromSums>(args.scratch, from_);
    SumRows(queue_, batch, dy, from);
    FindGradients(queue_, batch, dy, from, dx);
  }

 private:
  template <class T>
  static T* At(void* memory, int64_t floats) {
    return reinterpret_cast<T*>(static_cast<float*>(memory) + floats);
  }

  Batch BatchOf(const KernelArgs& args) const {
    const bool affine = layer_.affine();
    return {rows_,
            args.inputs[0].f32(),
            affine ? args.params[0].f32() : nullptr,
            affine ? args.params[1].f32() : nullptr,
            At<NormRow>(training_ ? args.saved : args.scratch, kept_),
            layer_.eps()};
  }

  CudaQueue& queue_;
  const RowNormLayer& layer_;
  const NormRows rows_;
  const int64_t samples_;
  const bool training_;
  const ColumnSums columns_;  // used if a channel has one pixel
  FloatRoom saved_, scratch_;
  int64_t kept_ = 0, from_ = 0, partial_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> MakeRowNormCuda(const KernelRequest& request) {
  return std::make_unique<RowNormCuda>(request);
}

}  // namespace dtrain
