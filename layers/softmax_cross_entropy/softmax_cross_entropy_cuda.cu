// Implements softmax cross-entropy on the GPU under the name "direct".
//
// As on the CPU, Forward saves {largest logit, 1 / sum of exponentials} of each row for Backward, which computes the
// exponentials again.  Where rows are short Forward writes the gradients, too, in the same kernel.
#include <cmath>

#include "framework/kernels/cuda/loops.h"
#include "framework/kernels/cuda/softmax_sum.h"
#include "framework/nn/kernel.h"
#include "layers/softmax_cross_entropy/softmax_cross_entropy.h"

namespace dtrain {
namespace {

// Holds the saved values of one row.
struct KeptRow {
  float largest, inverse_sum;
};

// Holds the sums over a row: of its softmax, and of its logits.  They are double, as on the CPU.
struct RowSums {
  SoftmaxSum softmax;
  double logits;
};

// Refers to the logits and their labels.
struct LabelledRows {
  const float* x;
  const int32_t* labels;
  int64_t rows, classes;
  int64_t ignored;  // ignored label; -1: none
  double smoothing;
  float at_label, spread;  // what the gradient subtracts: at the label as well, and everywhere

  constexpr bool Ignores(int64_t row) const { return ignored >= 0 && labels[row] == ignored; }
  constexpr bool HasClass(int64_t row) const { return labels[row] >= 0 && labels[row] < classes; }
};

DT_DEVICE double LossOf(const LabelledRows& of, int64_t row, const RowSums& sums) {
  const auto largest = static_cast<double>(sums.softmax.largest);
  double target = static_cast<double>(of.x[row * of.classes + of.labels[row]]) - largest;
  if (of.smoothing > 0) {
    const double mean = sums.logits / static_cast<double>(of.classes) - largest;
    target = (1 - of.smoothing) * target + of.smoothing * mean;
  }
  return std::log(sums.softmax.sum) - target;
}

// Returns the loss of a row, and keeps what its gradients need.
DT_DEVICE double Keep(const LabelledRows& of, int64_t row, const RowSums& sums, KeptRow& kept) {
  const bool counts = of.HasClass(row) && !std::isinf(sums.softmax.largest);
  kept = {sums.softmax.largest, counts ? static_cast<float>(1 / sums.softmax.sum) : NAN};
  if (of.Ignores(row)) return 0;
  return counts ? LossOf(of, row, sums) : NAN;
}

DT_DEVICE float GradientOf(const LabelledRows& of, int64_t row, int64_t c, const KeptRow& kept,
                           float scale) {
  if (of.Ignores(row)) return 0;
  const float spread = of.spread * scale;
  const float p = std::exp(of.x[row * of.classes + c] - kept.largest) * (kept.inverse_sum * scale);
  return p - (c == of.labels[row] ? of.at_label * scale + spread : spread);
}

// Exponentials are relative to the largest logit, so that none overflows.  Loss and gradients are NaN if a logit is NaN or
// +infinity, if all are -infinity, or if the label is outside [0, classes).
void FindLosses(CudaQueue& queue, const LabelledRows& of, KeptRow* kept, double* losses) {
  ForEachRow(
      queue,
      {"softmax losses",
       {Reads(of.x, of.rows * of.classes), Reads(of.labels, of.rows), Writes(kept, of.rows),
        Writes(losses, of.rows)}},
      of.rows, of.classes, RowSums{{-INFINITY, 0}, 0},
      [=] DT_DEVICE(int64_t row, int64_t c) {
        const float x = of.x[row * of.classes + c];
        return RowSums{{x, 1}, x};
      },
      [] DT_DEVICE(const RowSums& a, const RowSums& b) {
        return RowSums{Joined(a.softmax, b.softmax), a.logits + b.logits};
      },
      [=] DT_DEVICE(int64_t row, const RowSums& sums) {
        losses[row] = Keep(of, row, sums, kept[row]);
      });
}

// The same in one kernel where rows are short, with the gradients (null: none): a thread does all terms of a sample.
void FindFewLosses(CudaQueue& queue, const LabelledRows& of, int64_t terms,
                   const StepValues* values, float* y, float* dx) {
  const int64_t batch = of.rows / terms, count = of.rows * of.classes;
  ForEach(queue,
          {"softmax losses",
           {Reads(of.x, count), Reads(of.labels, of.rows), Reads(values, dx == nullptr ? 0 : 1),
            Writes(y, batch), Writes(dx, count)}},
          batch, [=] DT_DEVICE(int64_t n) {
            double loss = 0;
            for (int64_t row = n * terms; row < (n + 1) * terms; ++row) {
              const float* const x = of.x + row * of.classes;
              KeptRow kept;
              RowSums sums = {{-INFINITY, 0}, 0};
              for (int64_t c = 0; c < of.classes; ++c) {
                sums.softmax.largest = x[c] > sums.softmax.largest ? x[c] : sums.softmax.largest;
              }
              for (int64_t c = 0; c < of.classes; ++c) {
                sums.softmax.sum += std::exp(x[c] - sums.softmax.largest);
                sums.logits += x[c];
              }
              loss += Keep(of, row, sums, kept);
              for (int64_t c = 0; c < of.classes && dx != nullptr; ++c) {
                dx[row * of.classes + c] = GradientOf(of, row, c, kept, values->loss_scale);
              }
            }
            y[n] = static_cast<float>(loss);
          });
}

// Adds up each sample's losses in the order of its terms.
void AddTerms(CudaQueue& queue, int64_t batch, int64_t terms, const double* losses, float* y) {
  ForEach(queue, {"softmax loss terms", {Reads(losses, batch * terms), Writes(y, batch)}}, batch,
          [=] DT_DEVICE(int64_t n) {
            double sum = 0;
            for (int64_t t = n * terms; t < (n + 1) * terms; ++t) sum += losses[t];
            y[n] = static_cast<float>(sum);
          });
}

void FindGradients(CudaQueue& queue, const LabelledRows& of, const KeptRow* kept,
                   const StepValues* values, float* dx) {
  const int64_t count = of.rows * of.classes;
  ForEach(queue,
          {"softmax gradient",
           {Reads(values, 1), Reads(of.x, count), Reads(kept, of.rows), Reads(of.labels, of.rows),
            Writes(dx, count)}},
          count, [=] DT_DEVICE(int64_t i) {
            const int64_t row = i / of.classes;
            dx[i] = GradientOf(of, row, i % of.classes, kept[row], values->loss_scale);
          });
}

constexpr int64_t kFewClasses = 64, kFewTerms = 4;  // what one thread does

class SoftmaxCrossEntropyCuda : public Kernel {
 public:
  explicit SoftmaxCrossEntropyCuda(const KernelRequest& request)
      : queue_(QueueOf(request.device)),
        layer_(*static_cast<const SoftmaxCrossEntropy*>(request.layer)),
        batch_(request.inputs[0][0]),
        terms_(request.inputs[1].CountFrom(1)),
        classes_(request.inputs[0].count() / (batch_ * terms_)),
        mode_(request.mode),
        few_(classes_ <= kFewClasses && terms_ <= kFewTerms) {}

  KernelNeeds Needs() const override {
    const auto rows = static_cast<size_t>(batch_ * terms_);
    KernelNeeds needs;
    needs.forward_writes_gradients = few_;
    if (few_) return needs;
    needs.scratch_bytes = rows * sizeof(double);
    (mode_ == Mode::kTrain ? needs.saved_bytes : needs.scratch_bytes) += rows * sizeof(KeptRow);
    needs.backward_reads_inputs = true;
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    const LabelledRows rows = RowsOf(args);
    if (few_) {
      float* const dx = args.input_gradients.empty() ? nullptr : args.input_gradients[0].f32();
      return FindFewLosses(queue_, rows, terms_, args.values, args.outputs[0].f32(), dx);
    }
    auto* const losses = static_cast<double*>(args.scratch);
    void* const kept_at = mode_ == Mode::kTrain ? args.saved : losses + batch_ * terms_;
    auto* const kept = static_cast<KeptRow*>(kept_at);
    FindLosses(queue_, rows, kept, losses);
    AddTerms(queue_, batch_, terms_, losses, args.outputs[0].f32());
  }

  void Backward(const KernelArgs& args) override {
    float* const dx = args.input_gradients[0].f32();
    if (dx == nullptr || few_) return;
    FindGradients(queue_, RowsOf(args), static_cast<const KeptRow*>(args.saved), args.values, dx);
  }

 private:
  LabelledRows RowsOf(const KernelArgs& args) const {
    const double smoothing = layer_.label_smoothing();
    return {args.inputs[0].f32(),
            args.inputs[1].i32(),
            batch_ * terms_,
            classes_,
            layer_.ignored(),
            smoothing,
            static_cast<float>(1 - smoothing),
            static_cast<float>(smoothing / static_cast<double>(classes_))};
  }

  CudaQueue& queue_;
  const SoftmaxCrossEntropy& layer_;
  const int64_t batch_, terms_, classes_;
  const Mode mode_;
  const bool few_;
};

std::unique_ptr<Kernel> MakeSoftmaxCrossEntropyCuda(const KernelRequest& request,
                                                    const KernelOffer&) {
  return std::make_unique<SoftmaxCrossEntropyCuda>(request);
}

DTRAIN_KERNEL("softmax_cross_entropy", DeviceKind::kCuda, "direct", OfferPlain,
              MakeSoftmaxCrossEntropyCuda);

}  // namespace
}  // namespace dtrain
