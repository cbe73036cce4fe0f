// Saved from Forward to Backward: the mean and 1 / deviation of each row.  The scratch memory holds doubles: the
// gradients of weight and bias [2 G K], or, if a channel has several pixels, {sum of dy, sum of dy (x - mean)} of each
// channel of each row [rows, K, 2].
#include "framework/kernels/cpu/row_norm.h"

#include <algorithm>
#include <cmath>

#include "framework/device/cpu/parallel.h"
#include "framework/kernels/cpu/row_norm_loops.h"
#include "framework/nn/row_norm_layer.h"

namespace dtrain {
namespace {

class RowNormKernel : public Kernel {
 public:
  explicit RowNormKernel(const KernelRequest& request)
      : layer_(static_cast<const RowNormLayer&>(*request.layer)),
        rows_(layer_.RowsOf(request.inputs[0])),
        training_(request.mode == Mode::kTrain),
        threads_(request.inputs[0].count() < 2 * kSliceMin ? 1 : request.device.threads),
        isa_(request.device.isa) {}

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    if (training_) {
      needs.saved_bytes = static_cast<size_t>(rows_.rows) * sizeof(Row);
      const int64_t sums = has_planes() ? rows_.rows * rows_.channels : rows_.parameters();
      needs.scratch_bytes = static_cast<size_t>(2 * sums) * sizeof(double);
    }
    needs.backward_reads_inputs = true;
    needs.forward_in_place = !training_;
    needs.backward_in_place = true;
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    ParallelFor(threads_, rows_.rows, [&](int64_t r) {
      const float* const x = args.inputs[0].f32() + r * rows_.size();
      const Row row = RowOf(x);
      if (training_) Kept(args)[r] = row;
      float* const y = args.outputs[0].f32() + r * rows_.size();
      const float *const weight = ParamOf(args, 0, r), *const bias = ParamOf(args, 1, r);
      if (!has_planes()) {
        DTRAIN_ISA_SELECT(isa_, NormaliseRow)
        (x, rows_.size(), row.mean, row.inverse, weight, bias, y);
        return;
      }
      for (int64_t k = 0; k < rows_.channels; ++k) {
        const int64_t at = k * rows_.pixels;
        const float scale = weight == nullptr ? row.inverse : row.inverse * weight[k];
        DTRAIN_ISA_SELECT(isa_, NormalisePlane)
        (x + at, rows_.pixels, row.mean, scale, bias == nullptr ? 0 : bias[k], y + at);
      }
    });
  }

  // The gradients of the parameters are computed first, because dx may overwrite dy.
  void Backward(const KernelArgs& args) override {
    if (has_planes()) {
      SumPlanes(args);
      if (layer_.affine()) JoinPlanes(args);
    } else if (layer_.affine()) {
      SumColumns(args);
    }
    if (args.input_gradients[0].data == nullptr) return;
    ParallelFor(threads_, rows_.rows, [&](int64_t r) { RowGradient(args, r); });
  }

 private:
  struct Row {
    float mean, inverse;
  };

  bool has_planes() const { return rows_.pixels > 1; }
  static Row* Kept(const KernelArgs& args) { return static_cast<Row*>(args.saved); }
  static double* Scratch(const KernelArgs& args) { return static_cast<double*>(args.scratch); }

  // Returns the address of the weights (param 0) or biases (param 1) of row r, or null if the layer is not affine.
  const float* ParamOf(const KernelArgs& args, size_t param, int64_t r) const {
    if (!layer_.affine()) return nullptr;
    return args.params[param].f32() + r % rows_.groups * rows_.channels;
  }

  Row RowOf(const float* x) const {
    const auto size = static_cast<double>(rows_.size());
    const NormSumPair sums = DTRAIN_ISA_SELECT(isa_, SumsOfValues)(x, rows_.size());
    const double mean = sums.first / size;
    const double variance = std::max(0.0, sums.second / size - mean * mean);
    return {static_cast<float>(mean), static_cast<float>(1 / std::sqrt(variance + layer_.eps()))};
  }

  // Computes {sum of dy, sum of dy (x - mean)} of each channel of each row.
  void SumPlanes(const KernelArgs& args) const {
    auto* const sums = static_cast<NormSumPair*>(args.scratch);
    ParallelFor(threads_, rows_.rows, [&](int64_t r) {
      for (int64_t k = 0; k < rows_.channels; ++k) {
        const int64_t plane = r * rows_.channels + k;
        const float* const x = args.inputs[0].f32() + plane * rows_.pixels;
        const float* const dy = args.output_gradients[0].f32() + plane * rows_.pixels;
        sums[plane] = DTRAIN_ISA_SELECT(isa_, SumsOfGradients)(x, dy, nullptr, rows_.pixels,
                                                               Kept(args)[r].mean);
      }
    });
  }

  void JoinPlanes(const KernelArgs& args) const {
    const auto* const sums = static_cast<const NormSumPair*>(args.scratch);
    for (int64_t p = 0; p < rows_.parameters(); ++p) {
      double weight = 0, bias = 0;
      for (int64_t plane = p; plane < rows_.rows * rows_.channels; plane += rows_.parameters()) {
        bias += sums[plane].first;
        weight += sums[plane].second * Kept(args)[plane / rows_.channels].inverse;
      }
      Store(args, p, weight, bias);
    }
  }

  // Computes the parameters' gradients; each thread adds up the rows of its own columns.
  void SumColumns(const KernelArgs& args) const {
    const int64_t columns = rows_.parameters();
    double *const weight = Scratch(args), *const bias = weight + columns;
    RunTeam(threads_, [&](int thread, int team) {
      const Range mine = SplitEvenly({0, columns}, team, thread);
      std::fill(weight + mine.begin, weight + mine.end, 0.0);
      std::fill(bias + mine.begin, bias + mine.end, 0.0);
      for (int64_t r = 0; r < rows_.rows; ++r) AddRow(args, r, mine);
      for (int64_t c = mine.begin; c < mine.end; ++c) Store(args, c, weight[c], bias[c]);
    });
  }

  void AddRow(const KernelArgs& args, int64_t r, const Range& columns) const {
    const int64_t first = r % rows_.groups * rows_.channels;  // the row's first column
    const int64_t begin = std::max(columns.begin, first);
    const int64_t count = std::min(columns.end, first + rows_.channels) - begin;
    if (count <= 0) return;
    const int64_t at = r * rows_.size() + begin - first;
    double* const weight = Scratch(args) + begin;
    DTRAIN_ISA_SELECT(isa_, AddRowGradients)
    (args.inputs[0].f32() + at, args.output_gradients[0].f32() + at, count, Kept(args)[r].mean,
     Kept(args)[r].inverse, weight, weight + rows_.parameters());
  }

  static void Store(const KernelArgs& args, int64_t at, double weight, double bias) {
    float &dweight = args.param_gradients[0].f32()[at], &dbias = args.param_gradients[1].f32()[at];
    dweight = static_cast<float>(args.accumulate ? dweight + weight : weight);
    dbias = static_cast<float>(args.accumulate ? dbias + bias : bias);
  }

  void RowGradient(const KernelArgs& args, int64_t r) const {
    const int64_t at = r * rows_.size();
    const float *const x = args.inputs[0].f32() + at, *const dy =
                                                          args.output_gradients[0].f32() + at;
    float* const dx = args.input_gradients[0].f32() + at;
    const float* const weight = ParamOf(args, 0, r);
    if (!has_planes()) {
      const NormSumPair sums =
          DTRAIN_ISA_SELECT(isa_, SumsOfGradients)(x, dy, weight, rows_.size(), Kept(args)[r].mean);
      const NormGradient by = GradientOf(Kept(args)[r], sums);
      DTRAIN_ISA_SELECT(isa_, NormGradientRow)(x, dy, weight, rows_.size(), by, dx);
      return;
    }
    const NormSumPair* const planes =
        static_cast<const NormSumPair*>(args.scratch) + r * rows_.channels;
    NormSumPair sums = {0, 0};
    for (int64_t k = 0; k < rows_.channels; ++k) {
      const double by = weight == nullptr ? 1 : weight[k];
      sums = {sums.first + by * planes[k].first, sums.second + by * planes[k].second};
    }
    NormGradient by = GradientOf(Kept(args)[r], sums);
    for (int64_t k = 0; k < rows_.channels; ++k) {
      const int64_t plane = k * rows_.pixels;
      by.scale = Kept(args)[r].inverse * (weight == nullptr ? 1 : weight[k]);
      DTRAIN_ISA_SELECT(isa_, NormGradientRow)
      (x + plane, dy + plane, nullptr, rows_.pixels, by, dx + plane);
    }
  }

  // Returns the factors of dx from `sums`, the sums of d and of d (x - mean) over the row.
  NormGradient GradientOf(const Row& row, const NormSumPair& sums) const {
    const double inverse = row.inverse, share = inverse / static_cast<double>(rows_.size());
    return {row.mean, row.inverse, static_cast<float>(share * sums.first),
            static_cast<float>(share * inverse * inverse * sums.second)};
  }

  const RowNormLayer& layer_;
  const NormRows rows_;
  const bool training_;
  const int threads_;
  const Isa isa_;
};

}  // namespace

std::unique_ptr<Kernel> MakeRowNorm(const KernelRequest& request) {
  return std::make_unique<RowNormKernel>(request);
}

}  // namespace dtrain
