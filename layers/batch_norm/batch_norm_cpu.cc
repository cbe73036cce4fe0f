// Batch normalisation on the CPU: plain or channels last, with a ReLU fused into both passes.
// oneDNN's sums in float, which at 100,000 values a channel is seen in the fourth digit of a deep
// net's outputs, and reads the input once more.
//
// A frozen layer's backward pass is that of evaluation: dx = scale dy.
//
// Forward, training: {sum of x, sum of x^2} of each channel and the number of values, summed in
// double, where taking mean^2 off loses nothing that float has.  Backward: {sum of dy, sum of dy (x
// - mean)} likewise, for dx.  With `sync` both are sums over all workers, and the same to the bit
// on all of them; the gradients of weight and bias stay those of this worker's samples, as the
// strategy sums them.  Sums are taken in pieces that follow from the shape, so threads change no
// bit.
//
// Kept from Forward to Backward: values [1] | 1 / deviation [C], doubles | mean | weight /
// deviation [C], floats.  Scratch: sums [2 C + 1] | each piece's sums [2 C], doubles | two factors
// [2, C] floats.
#include <algorithm>
#include <cmath>

#include "framework/device/cpu/parallel.h"
#include "framework/nn/kernel.h"
#include "layers/batch_norm/batch_norm.h"
#include "layers/batch_norm/batch_norm_loops.h"

namespace dtrain {
namespace {

// Channels last, rows are shared out in so many pieces at most, and none has fewer rows.
constexpr int64_t kPiecesMax = 64;
constexpr int64_t kPieceRowsMin = 64;
// Values (2 MiB) from which an output is written past the caches: a cache line that is written as a
// whole need not be read.
constexpr int64_t kStreamMin = 512 * 1024;

class BatchNormCpu : public Kernel {
 public:
  BatchNormCpu(const KernelRequest& request, const KernelOffer& offer)
      : training_(request.mode == Mode::kTrain),
        norm_(*static_cast<const BatchNorm*>(request.layer)),
        relu_(request.fused_relu),
        // [N, C] is rows as they are.
        rows_last_(request.inputs[0].rank() == 2 || offer.inputs[0] == Format::kChannelsLast),
        batch_(request.inputs[0][0]),
        channels_(request.inputs[0][1]),
        plane_(request.inputs[0].CountFrom(1) / channels_),
        pieces_(rows_last_ ? std::clamp(batch_ * plane_ / kPieceRowsMin, int64_t{1}, kPiecesMax)
                           : 0),
        device_(request.device) {}

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    const size_t channels = static_cast<size_t>(channels_);
    needs.saved_bytes = (1 + channels) * sizeof(double) + 2 * channels * sizeof(float);
    needs.scratch_bytes = (1 + 2 * channels * static_cast<size_t>(1 + pieces_)) * sizeof(double) +
                          2 * channels * sizeof(float);
    needs.backward_reads_inputs = training_ || relu_;
    needs.forward_in_place = !training_;
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
    if (!training_) return BackwardOfFrozen(args, factors);
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
  // The statistics are constants, and nobody takes the parameters' gradients.
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

  // The batch's statistics, and the running ones moved towards them.
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
      MoveRunning(norm_.momentum(), moments, statistics.values(), mean[c], variance[c]);
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

  // The forward pass reads no corrections: any array will do for those.
  ChannelFactors FactorsOf(const KernelArgs& args, const Kept& kept) const {
    return {kept.mean, kept.scale, args.params[1].f32(), kept.mean, kept.mean};
  }
  static ChannelFactors FromChannel(const ChannelFactors& f, int64_t c) {
    return {f.mean + c, f.scale + c, f.bias + c, f.from_bias + c, f.from_scale + c};
  }

  // Doubles first, so that they are aligned.
  double* Sums(const KernelArgs& args) const { return static_cast<double*>(args.scratch); }
  double* PieceSums(const KernelArgs& args, int64_t piece) const {
    return Sums(args) + 1 + 2 * channels_ * (1 + piece);
  }
  float* Floats(const KernelArgs& args) const {
    return reinterpret_cast<float*>(PieceSums(args, pieces_));
  }

  // body(offset, rows, channels, first channel) for all of the image, in parallel: shares of the
  // rows, or the planes.
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

  // Sums(args) = what body(offset, rows, channels, first channel, sums) adds up over the image:
  // pieces of the rows, added in order, or each channel's planes in the order of the samples.
  template <class Body>
  void SumRuns(const KernelArgs& args, const Body& body) const {
    double* const sums = Sums(args);
    if (!rows_last_) return SumPlanes(sums, body);
    ParallelFor(device_.threads, pieces_, [&](int64_t piece) {
      const Range rows =
          SplitEvenly({0, batch_ * plane_}, static_cast<int>(pieces_), static_cast<int>(piece));
      double* const part = PieceSums(args, piece);
      std::fill_n(part, 2 * channels_, 0.0);
      body(rows.begin * channels_, rows.size(), channels_, 0, part);
    });
    std::copy_n(PieceSums(args, 0), 2 * channels_, sums);
    for (int64_t piece = 1; piece < pieces_; ++piece) {
      const double* const part = PieceSums(args, piece);
      for (int64_t i = 0; i < 2 * channels_; ++i) sums[i] += part[i];
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

  const bool training_;
  const BatchNorm& norm_;
  const bool relu_;
  const bool rows_last_;
  const int64_t batch_, channels_, plane_;
  const int64_t pieces_;
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
  if (request.mode == Mode::kTrain) norm.CheckEnoughIn(request.inputs[0]);
  return std::make_unique<BatchNormCpu>(request, offer);
}

DTRAIN_KERNEL("batch_norm", DeviceKind::kCpu, "direct", OfferBatchNormCpu, MakeBatchNormCpu);

}  // namespace
}  // namespace dtrain
