// Batch normalisation over the samples of all workers, implementation "sync": for layers with
// `sync: true`, plain or channels last, with a ReLU fused into both passes.  (Evaluation sums
// nothing; it is here because a plan names one kernel a layer, for both modes.)
//
// Forward, training: {sum of x, sum of x^2} of each channel and the number of values, summed over the workers
// in double, where taking mean^2 off loses nothing that float has.  Backward: {sum of dy, sum of
// dy (x - mean)} likewise, for dx; the gradients of weight and bias stay those of this worker's
// samples, as the strategy sums them.
//
// Kept from Forward to Backward: values [1] | 1 / deviation [C], doubles | mean | weight / deviation
// | bias [C], floats.  Scratch: pivots and two factors [3, C] floats | sums [2 C + 1] doubles | each
// thread's sums [2 C] doubles.
#include <algorithm>
#include <cmath>

#include "framework/core/check.h"
#include "framework/core/error.h"
#include "framework/device/cpu/parallel.h"
#include "framework/nn/kernel.h"
#include "framework/nn/worker_sums.h"
#include "layers/batch_norm/batch_norm.h"
#include "layers/batch_norm/batch_norm_loops.h"

namespace dtrain {
namespace {

class BatchNormSync : public Kernel {
 public:
  BatchNormSync(const KernelRequest& request, const KernelOffer& offer)
      : training_(request.mode == Mode::kTrain),
        norm_(*static_cast<const BatchNorm*>(request.layer)),
        relu_(request.fused_relu),
        // [N, C] is rows as they are.
        rows_last_(request.inputs[0].rank() == 2 || offer.inputs[0] == Format::kChannelsLast),
        batch_(request.inputs[0][0]),
        channels_(request.inputs[0][1]),
        plane_(request.inputs[0].CountFrom(1) / channels_),
        device_(request.device) {}

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    const size_t channels = static_cast<size_t>(channels_);
    needs.saved_bytes = (1 + channels) * sizeof(double) + 3 * channels * sizeof(float);
    needs.scratch_bytes = (4 * channels + 2) * sizeof(double) +
                          2 * channels * sizeof(double) * static_cast<size_t>(device_.threads);
    needs.backward_reads_inputs = true;
    needs.backward_in_place = true;
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    const float* const x = args.inputs[0].f32();
    const Kept kept = KeptOf(args);
    if (training_) {
      TakeBatch(args, x, kept);
    } else {
      const float *mean = args.state[0].f32(), *variance = args.state[1].f32();
      for (int64_t c = 0; c < channels_; ++c) Keep(args, c, mean[c], variance[c], kept);
    }
    Normalise(kept, x, args.outputs[0].f32());
  }

  void Backward(const KernelArgs& args) override {
    const float* const x = args.inputs[0].f32();
    const float* const dy = args.output_gradients[0].f32();
    const Kept kept = KeptOf(args);
    double* const sums = Sums(args);
    GradientSums(args, kept, x, dy, sums);
    StoreGradients(args, kept, sums);
    if (args.worker_sums != nullptr) {
      args.worker_sums->Sum({sums, static_cast<size_t>(2 * channels_)});
    }
    if (args.input_gradients[0].data == nullptr) return;
    float* const from_bias = Floats(args) + channels_;
    float* const from_scale = from_bias + channels_;
    for (int64_t c = 0; c < channels_; ++c) {
      const double share = kept.scale[c] / kept.values[0];
      from_bias[c] = static_cast<float>(share * sums[c]);
      from_scale[c] = static_cast<float>(share * kept.inverse[c] * kept.inverse[c] *
                                         sums[channels_ + c]);
    }
    InputGradients(kept, {from_bias, from_scale}, x, dy, args.input_gradients[0].f32());
  }

 private:
  struct Kept {
    double* values;
    double* inverse;
    float *mean, *scale, *bias;
  };
  struct Corrections {
    const float *from_bias, *from_scale;
  };

  // The batch's statistics, and the running ones moved towards them.
  void TakeBatch(const KernelArgs& args, const float* x, const Kept& kept) const {
    double* const sums = Sums(args);
    LocalSums(args, x, sums);
    sums[2 * channels_] = static_cast<double>(batch_ * plane_);
    if (args.worker_sums != nullptr) {
      args.worker_sums->Sum({sums, static_cast<size_t>(2 * channels_ + 1)});
    }
    const BatchStatistics statistics = {sums, channels_};
    norm_.CheckEnough(statistics.values());
    kept.values[0] = statistics.values();
    for (int64_t c = 0; c < channels_; ++c) {
      Keep(args, c, statistics.mean(c), statistics.variance(c), kept);
    }
    norm_.MoveRunning(statistics, args.state[0].f32(), args.state[1].f32());
  }

  void Keep(const KernelArgs& args, int64_t c, double mean, double variance,
            const Kept& kept) const {
    kept.inverse[c] = 1 / std::sqrt(variance + norm_.eps());
    kept.mean[c] = static_cast<float>(mean);
    kept.scale[c] = static_cast<float>(args.params[0].f32()[c] * kept.inverse[c]);
    kept.bias[c] = args.params[1].f32()[c];
  }

  Kept KeptOf(const KernelArgs& args) const {
    Kept kept;
    kept.values = static_cast<double*>(args.saved);
    kept.inverse = kept.values + 1;
    kept.mean = reinterpret_cast<float*>(kept.inverse + channels_);
    kept.scale = kept.mean + channels_;
    kept.bias = kept.scale + channels_;
    return kept;
  }

  // Doubles first, so that they are aligned.
  double* Sums(const KernelArgs& args) const { return static_cast<double*>(args.scratch); }
  double* ThreadSums(const KernelArgs& args, int thread) const {
    return Sums(args) + 2 * channels_ + 1 + 2 * channels_ * thread;
  }
  float* Floats(const KernelArgs& args) const {
    return reinterpret_cast<float*>(ThreadSums(args, device_.threads));
  }

  RowFactors Rows(const Kept& kept, const Corrections& corrections = {}) const {
    return {kept.mean, kept.scale, kept.bias, corrections.from_bias, corrections.from_scale};
  }
  PlaneFactors PlaneOf(const Kept& kept, int64_t c, const Corrections& corrections = {}) const {
    const bool backward = corrections.from_bias != nullptr;
    return {kept.mean[c], kept.scale[c], kept.bias[c], backward ? corrections.from_bias[c] : 0,
            backward ? corrections.from_scale[c] : 0};
  }

  // body(offset) for each plane of channel c, in the order of the samples; channels in parallel.
  template <class Body>
  void ForEachPlane(const Body& body) const {
    ParallelFor(device_.threads, channels_, [&](int64_t c) {
      for (int64_t n = 0; n < batch_; ++n) body(c, (n * channels_ + c) * plane_);
    });
  }

  // body(rows, sums) for a share of the rows on each thread; their sums are added in order.
  template <class Body>
  void SumShares(const KernelArgs& args, double* sums, const Body& body) const {
    std::fill_n(ThreadSums(args, 0), 2 * channels_ * device_.threads, 0.0);
    RunTeam(device_.threads, [&](int thread, int team) {
      body(SplitEvenly({0, batch_ * plane_}, team, thread), ThreadSums(args, thread));
    });
    std::fill_n(sums, 2 * channels_, 0.0);
    for (int thread = 0; thread < device_.threads; ++thread) {
      const double* const part = ThreadSums(args, thread);
      for (int64_t i = 0; i < 2 * channels_; ++i) sums[i] += part[i];
    }
  }

  // Sums of x and x^2.  Deviations from the channel's first value are summed: they are small where x
  // is far from 0.
  void LocalSums(const KernelArgs& args, const float* x, double* sums) const {
    float* const pivot = Floats(args);
    for (int64_t c = 0; c < channels_; ++c) pivot[c] = x[rows_last_ ? c : c * plane_];
    if (rows_last_) {
      SumShares(args, sums, [&](Range rows, double* part) {
        DTRAIN_ISA_SELECT(device_.isa, RowSums)
        (x + rows.begin * channels_, rows.size(), channels_, pivot, part);
      });
    } else {
      ParallelFor(device_.threads, channels_, [&](int64_t c) {
        double both[2] = {};
        for (int64_t n = 0; n < batch_; ++n) {
          DTRAIN_ISA_SELECT(device_.isa, PlaneSums)
          (x + (n * channels_ + c) * plane_, plane_, pivot[c], both);
        }
        sums[c] = both[0];
        sums[channels_ + c] = both[1];
      });
    }
    const double values = static_cast<double>(batch_ * plane_);
    for (int64_t c = 0; c < channels_; ++c) {
      const double p = pivot[c], sum = sums[c];
      sums[c] = sum + values * p;
      sums[channels_ + c] += 2 * p * sum + values * p * p;
    }
  }

  void Normalise(const Kept& kept, const float* x, float* y) const {
    if (!rows_last_) {
      return ForEachPlane([&](int64_t c, int64_t at) {
        DTRAIN_ISA_SELECT(device_.isa, PlaneNormalise)
        (x + at, plane_, PlaneOf(kept, c), relu_, y + at);
      });
    }
    RunTeam(device_.threads, [&](int thread, int team) {
      const Range rows = SplitEvenly({0, batch_ * plane_}, team, thread);
      const int64_t at = rows.begin * channels_;
      DTRAIN_ISA_SELECT(device_.isa, RowNormalise)
      (x + at, rows.size(), channels_, Rows(kept), relu_, y + at);
    });
  }

  void GradientSums(const KernelArgs& args, const Kept& kept, const float* x, const float* dy,
                    double* sums) const {
    if (rows_last_) {
      return SumShares(args, sums, [&](Range rows, double* part) {
        const int64_t at = rows.begin * channels_;
        DTRAIN_ISA_SELECT(device_.isa, RowGradientSums)
        (x + at, dy + at, rows.size(), channels_, Rows(kept), relu_, part);
      });
    }
    ParallelFor(device_.threads, channels_, [&](int64_t c) {
      double both[2] = {};
      for (int64_t n = 0; n < batch_; ++n) {
        const int64_t at = (n * channels_ + c) * plane_;
        DTRAIN_ISA_SELECT(device_.isa, PlaneGradientSums)
        (x + at, dy + at, plane_, PlaneOf(kept, c), relu_, both);
      }
      sums[c] = both[0];
      sums[channels_ + c] = both[1];
    });
  }

  void StoreGradients(const KernelArgs& args, const Kept& kept, const double* sums) const {
    float* const weight = args.param_gradients[0].f32();
    float* const bias = args.param_gradients[1].f32();
    for (int64_t c = 0; c < channels_; ++c) {
      const auto from_weight = static_cast<float>(sums[channels_ + c] * kept.inverse[c]);
      const auto from_bias = static_cast<float>(sums[c]);
      weight[c] = args.accumulate ? weight[c] + from_weight : from_weight;
      bias[c] = args.accumulate ? bias[c] + from_bias : from_bias;
    }
  }

  void InputGradients(const Kept& kept, const Corrections& corrections, const float* x,
                      const float* dy, float* dx) const {
    if (!rows_last_) {
      return ForEachPlane([&](int64_t c, int64_t at) {
        DTRAIN_ISA_SELECT(device_.isa, PlaneGradient)
        (x + at, dy + at, plane_, PlaneOf(kept, c, corrections), relu_, dx + at);
      });
    }
    RunTeam(device_.threads, [&](int thread, int team) {
      const Range rows = SplitEvenly({0, batch_ * plane_}, team, thread);
      const int64_t at = rows.begin * channels_;
      DTRAIN_ISA_SELECT(device_.isa, RowGradient)
      (x + at, dy + at, rows.size(), channels_, Rows(kept, corrections), relu_, dx + at);
    });
  }

  const bool training_;
  const BatchNorm& norm_;
  const bool relu_;
  const bool rows_last_;
  const int64_t batch_, channels_, plane_;
  const Device device_;
};

std::optional<KernelOffer> OfferBatchNormSync(const KernelRequest& request) {
  const auto& norm = static_cast<const BatchNorm&>(*request.layer);
  if (request.device.kind != DeviceKind::kCpu || !norm.sync()) return std::nullopt;
  const bool image = request.inputs[0].rank() == 4;
  const bool plain = !image || request.available[0] == Format::kPlain;
  KernelOffer offer;
  offer.inputs = {plain ? Format::kPlain : Format::kChannelsLast};
  offer.outputs = offer.inputs;
  return offer;
}

std::unique_ptr<Kernel> MakeBatchNormSync(const KernelRequest& request, const KernelOffer& offer) {
  return std::make_unique<BatchNormSync>(request, offer);
}

DTRAIN_KERNEL("batch_norm", "sync", OfferBatchNormSync, MakeBatchNormSync);

}  // namespace
}  // namespace dtrain
