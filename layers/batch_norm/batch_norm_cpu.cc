// Implements batch normalisation on the CPU, for plain and channels_last images, with a ReLU fused into both passes.
// oneDNN's kernel is not used: it sums in float, which at 100,000 values per channel changes the fourth digit of a deep
// net's outputs, and reads the input once more.
//
// A frozen layer runs in evaluation mode; its backward pass is dx = scale dy.  An estimate of the statistics moves the
// running ones by the whole way to the batch's.
//
// In training, Forward sums {x, x^2} of each channel and counts the values.  The sums are double, so that subtracting
// mean^2 loses no digit that a float has.  Backward sums {dy, dy (x - mean)} likewise.  With `sync` both are sums over
// all workers, and bitwise equal on all of them; the gradients of weight and bias are those of this worker's samples
// only, since the strategy sums gradients over workers.  Sums are computed in parts that depend only on the shape, so
// the result is bitwise the same for any number of threads.
//
// Saved from Forward to Backward: number of values [1] and 1 / deviation [C] as doubles, then mean [C] and weight /
// deviation [C] as floats.  Scratch memory: sums [2 C + 1] and each part's sums [2 C] as doubles, then from_bias and
// from_scale [2, C] as floats.
#include <algorithm>
#include <cmath>

#include "framework/device/cpu/parallel.h"
#include "framework/nn/kernel.h"
#include "layers/batch_norm/batch_norm.h"
#include "layers/batch_norm/batch_norm_loops.h"

namespace dtrain {
namespace {

// In channels_last format the rows are divided into at most kPartsMax parts of at least kPartRowsMin rows.
constexpr int64_t kPartsMax = 64;
constexpr int64_t kPartRowsMin = 64;
// Outputs of at least this many values (2 MiB) are written with non-temporal stores, so that their cache lines need not
// be read first.
constexpr int64_t kStreamMin = 512 * 1024;

class BatchNormCpu : public Kernel {
 public:
  BatchNormCpu(const KernelRequest& request, const KernelOffer& offer)
      : uses_batch_(request.mode != Mode::kEvaluate),
        norm_(*static_cast<const BatchNorm*>(request.layer)),
        momentum_(request.mode == Mode::kEstimate ? 1 : norm_.momentum()),
        relu_(request.fused_relu),
        // A tensor [N, C] has rows of channels in plain format too.
        rows_last_(request.inputs[0].rank() == 2 || offer.inputs[0] == Format::kChannelsLast),
        batch_(request.inputs[0][0]),
        channels_(request.inputs[0][1]),
        plane_(request.inputs[0].CountFrom(1) / channels_),
        parts_(rows_last_ ? std::clamp(batch_ * plane_ / kPartRowsMin, int64_t{1}, kPartsMax) : 0),
        device_(request.device) {}

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    const size_t channels = static_cast<size_t>(channels_);
    needs.saved_bytes = (1 + channels) * sizeof(double) + 2 * channels * sizeof(float);
    needs.scratch_bytes = (1 + 2 * channels * static_cast<size_t>(1 + parts_)) * sizeof(double) +
                          2 * channels * sizeof(float);
    needs.backward_reads_inputs = uses_batch_ || relu_;
    needs.forward_in_place = !uses_batch_;
    needs.backward_in_place = true;
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    const float* const x = args.inputs[0].f32();
    const Kept kept = KeptOf(args);
    if (uses_batch_) {
      TakeBatch(args, x, kept);
    } else {
      const float *mean = args.state[0].f32(), *variance = args.state[1].f32();
      for (int64_t c = 0; c < channels_; ++c) Keep(args, c, {mean[c], variance[c]}, kept);
    }
    const ChannelFactors factors = FactorsOf(args, kept);
    float* const y = args.outputs[0].f32();
    const bool stream = y != x && batch_ * channels_ * plane_ >= kStreamMin;
    ForEachRun([&](int64_t at, int64_t rows, int64_t channels, int64_t c) {
      DTRAIN_ISA_SELECT(device_.isa, NormForward)
      (x + at, rows, channels, FromChannel(factors, c), relu_, stream, y + at);
    });
  }

  void Backward(const KernelArgs& args) override {
    const float* const x = args.inputs[0].f32();
    const float* const dy = args.output_gradients[0].f32();
    const Kept kept = KeptOf(args);
    ChannelFactors factors = FactorsOf(args, kept);
    if (!uses_batch_) return BackwardOfFrozen(args, factors);
    double* const sums = Sums(args);
    SumRuns(args, [&](int64_t at, int64_t rows, int64_t channels, int64_t c, double* part) {
      DTRAIN_ISA_SELECT(device_.isa, NormGradientSums)
      (x + at, dy + at, rows, channels, FromChannel(factors, c), relu_, part);
    });
    StoreGradients(args, kept, sums);
    SumWorkers(args, 2 * channels_);
    if (args.input_gradients[0].data == nullptr) return;
    float* const from_bias = Floats(args);
    float* const from_scale = from_bias + channels_;
    for (int64_t c = 0; c < channels_; ++c) {
      const double share = kept.scale[c] / kept.values[0];
      from_bias[c] = static_cast<float>(share * sums[c]);
      from_scale[c] =
          static_cast<float>(share * kept.inverse[c] * kept.inverse[c] * sums[channels_ + c]);
    }
    factors.from_bias = from_bias;
    factors.from_scale = from_scale;
    float* const dx = args.input_gradients[0].f32();
    ForEachRun([&](int64_t at, int64_t rows, int64_t channels, int64_t c) {
      DTRAIN_ISA_SELECT(device_.isa, NormBackward)
      (x + at, dy + at, rows, channels, FromChannel(factors, c), relu_, dx + at);
    });
  }

 private:
  // The statistics are constants, and the parameters' gradients are not needed.
  void BackwardOfFrozen(const KernelArgs& args, const ChannelFactors& factors) const {
    const float* const x = args.inputs[0].f32();
    const float* const dy = args.output_gradients[0].f32();
    float* const dx = args.input_gradients[0].f32();
    if (dx == nullptr) return;
    ForEachRun([&](int64_t at, int64_t rows, int64_t channels, int64_t c) {
      DTRAIN_ISA_SELECT(device_.isa, NormBackwardOfFrozen)
      (x + at, dy + at, rows, channels, FromChannel(factors, c), relu_, dx + at);
    });
  }

  struct Kept {
    double* values;
    double* inverse;
    float *mean, *scale;
  };

  // Computes the batch's statistics and updates the running ones.
  void TakeBatch(const KernelArgs& args, const float* x, const Kept& kept) const {
    double* const sums = Sums(args);
    SumRuns(args, [&](int64_t at, int64_t rows, int64_t channels, int64_t, double* part) {
      DTRAIN_ISA_SELECT(device_.isa, NormSums)(x + at, rows, channels, part);
    });
    sums[2 * channels_] = static_cast<double>(batch_ * plane_);
    SumWorkers(args, 2 * channels_ + 1);
    const BatchStatistics statistics = {sums, channels_};
    norm_.CheckEnough(statistics.values());
    kept.values[0] = statistics.values();
    float *const mean = args.state[0].f32(), *const variance = args.state[1].f32();
    for (int64_t c = 0; c < channels_; ++c) {
      const Moments moments = statistics.Of(c);
      Keep(args, c, moments, kept);
      MoveRunning(momentum_, moments, statistics.values(), mean[c], variance[c]);
    }
  }

  void SumWorkers(const KernelArgs& args, int64_t count) const {
    if (!norm_.sync() || args.worker_sums == nullptr) return;
    args.worker_sums->Sum({Sums(args), static_cast<size_t>(count)});
  }

  void Keep(const KernelArgs& args, int64_t c, const Moments& moments, const Kept& kept) const {
    kept.inverse[c] = 1 / std::sqrt(moments.variance + norm_.eps());
    kept.mean[c] = static_cast<float>(moments.mean);
    kept.scale[c] = static_cast<float>(args.params[0].f32()[c] * kept.inverse[c]);
  }

  Kept KeptOf(const KernelArgs& args) const {
    Kept kept;
    kept.values = static_cast<double*>(args.saved);
    kept.inverse = kept.values + 1;
    kept.mean = reinterpret_cast<float*>(kept.inverse + channels_);
    kept.scale = kept.mean + channels_;
    return kept;
  }

  // from_bias and from_scale are not read by the forward pass, so any valid array may stand for them.
  ChannelFactors FactorsOf(const KernelArgs& args, const Kept& kept) const {
    return {kept.mean, kept.scale, args.params[1].f32(), kept.mean, kept.mean};
  }
  static ChannelFactors FromChannel(const ChannelFactors& f, int64_t c) {
    return {f.mean + c, f.scale + c, f.bias + c, f.from_bias + c, f.from_scale + c};
  }

  // Doubles come first in the scratch memory, so that they are aligned.
  double* Sums(const KernelArgs& args) const { return static_cast<double*>(args.scratch); }
  double* PartSums(const KernelArgs& args, int64_t part) const {
    return Sums(args) + 1 + 2 * channels_ * (1 + part);
  }
  float* Floats(const KernelArgs& args) const {
    return reinterpret_cast<float*>(PartSums(args, parts_));
  }

  // Calls body(offset, rows, channels, first channel) in parallel for the whole tensor: for each thread's share of the
  // rows, or in plain format for each plane.
  template <class Body>
  void ForEachRun(const Body& body) const {
    if (!rows_last_) {
      ParallelFor(device_.threads, batch_ * channels_,
                  [&](int64_t i) { body(i * plane_, plane_, 1, i % channels_); });
      return;
    }
    RunTeam(device_.threads, [&](int thread, int team) {
      const Range rows = SplitEvenly({0, batch_ * plane_}, team, thread);
      body(rows.begin * channels_, rows.size(), channels_, 0);
    });
  }

  // Computes Sums(args) from calls body(offset, rows, channels, first channel, sums), which add to `sums`: one call for
  // each part of the rows, whose sums are added in order, or in plain format one for each plane of a channel, in the
  // order of the samples.
  template <class Body>
  void SumRuns(const KernelArgs& args, const Body& body) const {
    double* const sums = Sums(args);
    if (!rows_last_) return SumPlanes(sums, body);
    ParallelFor(device_.threads, parts_, [&](int64_t part) {
      const Range rows =
          SplitEvenly({0, batch_ * plane_}, static_cast<int>(parts_), static_cast<int>(part));
      double* const own = PartSums(args, part);
      std::fill_n(own, 2 * channels_, 0.0);
      body(rows.begin * channels_, rows.size(), channels_, 0, own);
    });
    std::copy_n(PartSums(args, 0), 2 * channels_, sums);
    for (int64_t part = 1; part < parts_; ++part) {
      const double* const own = PartSums(args, part);
      for (int64_t i = 0; i < 2 * channels_; ++i) sums[i] += own[i];
    }
  }

  template <class Body>
  void SumPlanes(double* sums, const Body& body) const {
    ParallelFor(device_.threads, channels_, [&](int64_t c) {
      double both[2] = {};
      for (int64_t n = 0; n < batch_; ++n) {
        body((n * channels_ + c) * plane_, plane_, 1, c, both);
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

  const bool uses_batch_;  // computes with the statistics of the batch, not with the running ones
  const BatchNorm& norm_;
  const double momentum_;
  const bool relu_;
  const bool rows_last_;
  const int64_t batch_, channels_, plane_;
  const int64_t parts_;
  const Device device_;
};

std::optional<KernelOffer> OfferBatchNormCpu(const KernelRequest& request) {
  const bool image = request.inputs[0].rank() == 4;
  const bool plain = !image || request.available[0] == Format::kPlain;
  KernelOffer offer;
  offer.inputs = {plain ? Format::kPlain : Format::kChannelsLast};
  offer.outputs = offer.inputs;
  return offer;
}

std::unique_ptr<Kernel> MakeBatchNormCpu(const KernelRequest& request, const KernelOffer& offer) {
  const auto& norm = static_cast<const BatchNorm&>(*request.layer);
  if (request.mode != Mode::kEvaluate) norm.CheckEnoughIn(request.inputs[0]);
  return std::make_unique<BatchNormCpu>(request, offer);
}

DTRAIN_KERNEL("batch_norm", DeviceKind::kCpu, "direct", OfferBatchNormCpu, MakeBatchNormCpu);

}  // namespace
}  // namespace dtrain
