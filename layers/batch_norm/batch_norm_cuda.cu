// Implements batch normalisation on the GPU under the name "direct", in the format of its input, with a ReLU fused into
// both passes.  It computes what the CPU's kernel does (batch_norm_cpu.cc), with sums in double. cuDNN's is not used:
// it sums in float, cannot sum over workers and has no fused ReLU in this form.
//
// The kernel is memory-bound: Forward reads x twice and writes y, Backward reads x and dy twice and writes dx, 16 bytes at
// a time; the work per channel is negligible.
//
// With `sync` the sums are copied to the host, where those of all workers are added.
#include <cmath>

#include "framework/kernels/cuda/channel_loops.h"
#include "framework/kernels/cuda/element_types.h"
#include "framework/nn/kernel.h"
#include "layers/batch_norm/batch_norm.h"

namespace dtrain {
namespace {

// The channels' statistics and parameters; the arrays except weight and bias are saved for Backward.
struct Channels {
  double* values;   // [1]: values per channel in the batch
  double* inverse;  // 1 / deviation
  float *mean, *scale;
  const float *weight, *bias;
  double eps;

  DT_DEVICE void Keep(int64_t c, const Moments& moments) const {
    inverse[c] = 1 / std::sqrt(moments.variance + eps);
    mean[c] = static_cast<float>(moments.mean);
    scale[c] = static_cast<float>(weight[c] * inverse[c]);
  }
};

// Holds what leads to the gradient behind the ReLU (GateRule).
template <class T>
struct Gate {
  Channels kept;
  const T *y, *dy;  // y null: not needed
  T* open;          // the gradient by the other term of the sum; null: not wanted
};

// Holds what the passes over all elements know of a channel.
struct NormChannel {
  float mean, scale, bias;
  DT_DEVICE float Normalised(float x) const { return (x - mean) * scale + bias; }
};

// The functors of channel_loops.h; null: not needed.
struct NormChannels {
  const float *mean, *scale, *bias;

  using Channel = NormChannel;
  static DT_DEVICE float At(const float* values, int64_t c) {
    return values == nullptr ? 0 : values[c];
  }
  DT_DEVICE NormChannel Of(int64_t c) const { return {At(mean, c), At(scale, c), At(bias, c)}; }
};

// y of {x, what is added}.
struct ApplyNorm : NormChannels {
  bool relu;
  DT_DEVICE float operator()(const Channel& of, const float* x) const {
    const float value = of.Normalised(x[0]) + x[1];
    return relu && value < 0 ? 0 : value;  // keeps a NaN
  }
};

// {x, x^2} of {x}.
struct MomentTerms : AnyChannel {
  DT_DEVICE SumPair operator()(const Channel&, const float* x, float*) const {
    const double value = x[0];
    return {value, value * value};
  }
};

// Finds the gradient behind the ReLU from {x, dy, y}.  With a fused sum the input of the ReLU is not known, but its output
// y.
struct GateRule {
  bool relu, by_output;
  DT_DEVICE float Open(const NormChannel& of, const float* x) const {
    if (!relu) return x[1];
    return (by_output ? x[2] : of.Normalised(x[0])) > 0 ? x[1] : 0;
  }
};

// {dy, dy (x - mean)} of {x, dy, y}, and dy behind the ReLU.
struct GradientTerms : NormChannels {
  GateRule gate;
  DT_DEVICE SumPair operator()(const Channel& of, const float* x, float* open) const {
    *open = gate.Open(of, x);
    return {*open, static_cast<double>(*open) * (x[0] - of.mean)};
  }
};

// dx of {x, dy, y}.
struct NormGradient : NormChannels {
  const float *from_bias, *from_scale;
  GateRule gate;

  struct Channel {
    NormChannel of;
    float from_bias, from_scale;
  };
  DT_DEVICE Channel Of(int64_t c) const {
    return {NormChannels::Of(c), from_bias[c], from_scale[c]};
  }
  DT_DEVICE float operator()(const Channel& c, const float* x) const {
    return c.of.scale * gate.Open(c.of, x) - c.from_bias - (x[0] - c.of.mean) * c.from_scale;
  }
};

// Takes a channel's statistics from the batch and moves the running ones.
struct BatchTaker {
  Channels kept;
  double momentum;
  float *mean, *variance;     // running
  const StepState* progress;  // null: no step is trained

  DT_DEVICE void Take(int64_t c, const Moments& moments, double values) const {
    kept.Keep(c, moments);
    if (c == 0) *kept.values = values;
    if (progress != nullptr && progress->Ended()) return;
    MoveRunning(momentum, moments, values, mean[c], variance[c]);
  }
};

// Takes the terms of dx that follow from a channel's {sum of dy, sum of dy (x - mean)}.
struct TermTaker {
  Channels kept;
  float *from_bias, *from_scale;

  DT_DEVICE void Take(int64_t c, const SumPair& sum) const {
    const double share = kept.scale[c] / *kept.values;
    const double inverse = kept.inverse[c];
    from_bias[c] = static_cast<float>(share * sum.first);
    from_scale[c] = static_cast<float>(share * inverse * inverse * sum.second);
  }
};

template <class T>  // the type of the images
class BatchNormCuda : public Kernel {
 public:
  BatchNormCuda(const KernelRequest& request, Format format)
      : queue_(QueueOf(request.device)),
        norm_(static_cast<const BatchNorm&>(*request.layer)),
        uses_batch_(request.mode != Mode::kEvaluate),
        momentum_(request.mode == Mode::kEstimate ? 1 : norm_.momentum()),
        relu_(request.fused_relu),
        adds_(request.fused_sum),
        count_(request.inputs[0].count()),
        channels_(request.inputs[0][1]),
        columns_(request.device, ChannelsOf(request.inputs[0], format), ElementsOfPack(sizeof(T))) {
    kept_values_ = saved_.Take(2);
    kept_inverse_ = saved_.Take(2 * channels_);
    kept_mean_ = saved_.Take(channels_);
    kept_scale_ = saved_.Take(channels_);
    if (!uses_batch_) return;
    sums_ = scratch_.Take(2 * (2 * channels_ + 1));
    partial_ = scratch_.Take(4 * columns_.partial_sums());
    from_bias_ = scratch_.Take(channels_);
    from_scale_ = scratch_.Take(channels_);
    if (norm_.sync()) of_workers_.resize(static_cast<size_t>(2 * channels_ + 1));
  }

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    needs.saved_bytes = saved_.bytes();
    needs.scratch_bytes = scratch_.bytes();
    needs.backward_reads_inputs = uses_batch_ || relu_;
    needs.backward_reads_outputs = relu_ && adds_;
    needs.forward_in_place = !uses_batch_;
    needs.backward_in_place = true;
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    if (uses_batch_) {
      SumBatch(args);
    } else {
      TakeRunning(args);
    }
    const Channels kept = KeptOf(args);
    const int64_t channels = channels_;
    const T* const x = args.inputs[0].as<const T>();
    const T* const added = adds_ ? args.inputs[1].as<const T>() : nullptr;
    T* const y = args.outputs[0].as<T>();
    MapChannels(queue_,
                {"batch norm apply",
                 {Reads(x, count_), Reads(added, count_), Reads(kept.mean, channels),
                  Reads(kept.scale, channels), Reads(kept.bias, channels), Writes(y, count_)}},
                columns_.of(), ApplyNorm{{kept.mean, kept.scale, kept.bias}, relu_},
                Operands<T, 2>{x, added}, y);
  }

  void Backward(const KernelArgs& args) override {
    if (!uses_batch_) return BackwardOfFrozen(args);
    SumGradients(args);
    if (args.input_gradients[0].data == nullptr) return;
    const Gate<T> gate = GateOf(args);
    const Channels kept = gate.kept;
    const int64_t channels = channels_;
    const T* const x = args.inputs[0].as<const T>();
    const float *const from_bias = Scratch(args) + from_bias_, *const from_scale =
                                                                   Scratch(args) + from_scale_;
    T* const dx = args.input_gradients[0].as<T>();
    // What SumGradients has written needs no gate.
    const bool opened = gate.open != nullptr;
    const T *const dy = opened ? gate.open : gate.dy, *const y = opened ? nullptr : gate.y;
    const GateRule rule = {relu_ && !opened, y != nullptr};
    const float* const bias = rule.relu && !rule.by_output ? kept.bias : nullptr;
    MapChannels(queue_,
                {"batch norm gradient",
                 {Reads(x, count_), Reads(dy, count_), Reads(y, count_), Reads(kept.mean, channels),
                  Reads(kept.scale, channels), Reads(bias, channels), Reads(from_bias, channels),
                  Reads(from_scale, channels), Writes(dx, count_)}},
                columns_.of(),
                NormGradient{{kept.mean, kept.scale, bias}, from_bias, from_scale, rule},
                Operands<T, 3>{x, dy, y}, dx);
  }

  // The steps of Forward and Backward follow.  They are public because nvcc requires it of functions with device
  // lambdas.

  // Computes {sum of x, sum of x^2} of each channel, and the number of values; from them the batch's statistics and
  // the running ones, in the same kernel unless the sums of other workers come between.
  void SumBatch(const KernelArgs& args) {
    const int64_t channels = channels_;
    const double rows = static_cast<double>(columns_.rows());
    const T* const x = args.inputs[0].as<const T>();
    const bool alone = Alone(args);
    double* const sums = alone ? nullptr : Sums(args);
    const BatchTaker taker = {KeptOf(args), momentum_, args.state[0].f32(), args.state[1].f32(),
                              args.progress};
    const Channels kept = alone ? taker.kept : Channels{};
    SumChannels(
        queue_, {"batch norm sums", {Reads(x, count_)}},
        {Writes(sums, 2 * channels + 1), Reads(kept.weight, channels), Writes(kept.values, 1),
         Writes(kept.inverse, channels), Writes(kept.mean, channels), Writes(kept.scale, channels),
         Updates(alone ? taker.mean : nullptr, channels),
         Updates(alone ? taker.variance : nullptr, channels),
         Reads(alone ? args.progress : nullptr, 1)},
        columns_, Partial(args), MomentTerms{}, Operands<T, 1>{x}, static_cast<T*>(nullptr),
        [=] DT_DEVICE(int64_t c, const SumPair& sum) {
          if (alone) {
            const double own[3] = {sum.first, sum.second, rows};
            taker.Take(c, BatchStatistics{own, 1}.Of(0), rows);
            return;
          }
          sums[c] = sum.first;
          sums[channels + c] = sum.second;
          if (c == 0) sums[2 * channels] = rows;
        });
    if (alone) return norm_.CheckEnough(rows);
    SumWorkers(args, 2 * channels_ + 1);
    norm_.CheckEnough(of_workers_.back());
    TakeBatch(args, taker);
  }

  // Takes the statistics from the sums over all workers.
  void TakeBatch(const KernelArgs& args, const BatchTaker& taker) {
    const Channels kept = taker.kept;
    const BatchStatistics batch = {Sums(args), channels_};
    ForEach(queue_,
            {"batch norm statistics",
             {Reads(batch.sums, 2 * channels_ + 1), Reads(kept.weight, channels_),
              Writes(kept.values, 1), Writes(kept.inverse, channels_), Writes(kept.mean, channels_),
              Writes(kept.scale, channels_), Updates(taker.mean, channels_),
              Updates(taker.variance, channels_), Reads(taker.progress, 1)}},
            channels_, [=] DT_DEVICE(int64_t c) { taker.Take(c, batch.Of(c), batch.values()); });
  }

  void TakeRunning(const KernelArgs& args) {
    const Channels kept = KeptOf(args);
    const float *const mean = args.state[0].f32(), *const variance = args.state[1].f32();
    ForEach(queue_,
            {"batch norm running statistics",
             {Reads(mean, channels_), Reads(variance, channels_), Reads(kept.weight, channels_),
              Writes(kept.inverse, channels_), Writes(kept.mean, channels_),
              Writes(kept.scale, channels_)}},
            channels_, [=] DT_DEVICE(int64_t c) {
              kept.Keep(c, {mean[c], variance[c]});
            });
  }

  // Computes {sum of dy, sum of dy (x - mean)} of each channel, and from them the parameters' gradients and the terms of
  // dx.
  void SumGradients(const KernelArgs& args) {
    const Gate<T> gate = GateOf(args);
    const Channels kept = gate.kept;
    const int64_t channels = channels_;
    const bool accumulate = args.accumulate;
    const T* const x = args.inputs[0].as<const T>();
    const bool alone = Alone(args);
    double* const sums = alone ? nullptr : Sums(args);
    const bool wanted = args.input_gradients[0].data != nullptr, takes = alone && wanted;
    const TermTaker taker = {kept, Scratch(args) + from_bias_, Scratch(args) + from_scale_};
    float *const weight = args.param_gradients[0].f32(), *const bias =
                                                             args.param_gradients[1].f32();
    const GateRule rule = {relu_, gate.y != nullptr};
    const bool by_input = rule.relu && !rule.by_output;
    const NormChannels of = {kept.mean, by_input ? kept.scale : nullptr,
                             by_input ? kept.bias : nullptr};
    SumChannels(
        queue_,
        {"batch norm gradient sums",
         {Reads(x, count_), Reads(gate.dy, count_), Reads(gate.y, count_),
          Writes(gate.open, count_), Reads(of.mean, channels), Reads(of.scale, channels),
          Reads(of.bias, channels)}},
        {Writes(sums, 2 * channels), Reads(kept.inverse, channels),
         Reads(takes ? kept.values : nullptr, 1), Reads(takes ? kept.scale : nullptr, channels),
         Writes(takes ? taker.from_bias : nullptr, channels),
         Writes(takes ? taker.from_scale : nullptr, channels), Stores(weight, channels, accumulate),
         Stores(bias, channels, accumulate)},
        columns_, Partial(args), GradientTerms{of, rule}, Operands<T, 3>{x, gate.dy, gate.y},
        gate.open, [=] DT_DEVICE(int64_t c, const SumPair& sum) {
          if (takes) taker.Take(c, sum);
          if (!alone) {
            sums[c] = sum.first;
            sums[channels + c] = sum.second;
          }
          const auto from_weight = static_cast<float>(sum.second * kept.inverse[c]);
          const auto from_bias = static_cast<float>(sum.first);
          weight[c] = accumulate ? weight[c] + from_weight : from_weight;
          bias[c] = accumulate ? bias[c] + from_bias : from_bias;
        });
    if (alone) return;
    SumWorkers(args, 2 * channels_);
    if (wanted) TakeTerms(args, taker);
  }

  // The statistics are constants, and the parameters' gradients are not needed.
  void BackwardOfFrozen(const KernelArgs& args) {
    const Gate<T> gate = GateOf(args);
    const Channels kept = gate.kept;
    const int64_t channels = channels_;
    const GateRule rule = {relu_, gate.y != nullptr};
    const bool by_input = rule.relu && !rule.by_output;
    const T* const x = by_input ? args.inputs[0].as<const T>() : nullptr;
    T* const dx = args.input_gradients[0].as<T>();
    if (dx == nullptr && gate.open == nullptr) return;
    const NormChannels of = {by_input ? kept.mean : nullptr, kept.scale,
                             by_input ? kept.bias : nullptr};
    const ChannelRows rows = columns_.of();
    ForEach(queue_,
            {"frozen batch norm gradient",
             {Reads(x, count_), Reads(gate.dy, count_), Reads(gate.y, count_),
              Reads(of.mean, channels), Reads(of.scale, channels), Reads(of.bias, channels),
              Writes(gate.open, count_), Writes(dx, count_)}},
            count_, [=] DT_DEVICE(int64_t i) {
              const NormChannel channel = of.Of(rows.ChannelOf(i));
              const float given[] = {x == nullptr ? 0 : static_cast<float>(x[i]),
                                     static_cast<float>(gate.dy[i]),
                                     gate.y == nullptr ? 0 : static_cast<float>(gate.y[i])};
              const float dy = rule.Open(channel, given);
              if (gate.open != nullptr) gate.open[i] = static_cast<T>(dy);
              if (dx != nullptr) dx[i] = static_cast<T>(channel.scale * dy);
            });
  }

  // Takes the terms of dx from the sums over all workers.
  void TakeTerms(const KernelArgs& args, const TermTaker& taker) {
    const Channels kept = taker.kept;
    const int64_t channels = channels_;
    const double* const sums = Sums(args);
    ForEach(queue_,
            {"batch norm gradient terms",
             {Reads(kept.scale, channels), Reads(kept.values, 1), Reads(kept.inverse, channels),
              Reads(sums, 2 * channels), Writes(taker.from_bias, channels),
              Writes(taker.from_scale, channels)}},
            channels_, [=] DT_DEVICE(int64_t c) {
              taker.Take(c, {sums[c], sums[channels + c]});
            });
  }

 private:
  // True if the statistics are this worker's own.
  bool Alone(const KernelArgs& args) const { return !norm_.sync() || args.worker_sums == nullptr; }

  // Sums over all workers; of_workers_ has the sums as well.
  void SumWorkers(const KernelArgs& args, int64_t count) {
    const size_t bytes = static_cast<size_t>(count) * sizeof(double);
    queue_.Download(of_workers_.data(), Sums(args), bytes);
    queue_.Wait();
    args.worker_sums->Sum({of_workers_.data(), static_cast<size_t>(count)});
    queue_.Upload(Sums(args), of_workers_.data(), bytes);
  }

  Gate<T> GateOf(const KernelArgs& args) const {
    return {.kept = KeptOf(args),
            .y = adds_ && relu_ ? args.outputs[0].as<const T>() : nullptr,
            .dy = args.output_gradients[0].as<const T>(),
            .open = adds_ ? args.input_gradients[1].as<T>() : nullptr};
  }
  Channels KeptOf(const KernelArgs& args) const {
    float* const saved = static_cast<float*>(args.saved);
    return {.values = reinterpret_cast<double*>(saved + kept_values_),
            .inverse = reinterpret_cast<double*>(saved + kept_inverse_),
            .mean = saved + kept_mean_,
            .scale = saved + kept_scale_,
            .weight = args.params[0].f32(),
            .bias = args.params[1].f32(),
            .eps = norm_.eps()};
  }
  static float* Scratch(const KernelArgs& args) { return static_cast<float*>(args.scratch); }
  double* Sums(const KernelArgs& args) const {
    return reinterpret_cast<double*>(Scratch(args) + sums_);
  }
  SumPair* Partial(const KernelArgs& args) const {
    return reinterpret_cast<SumPair*>(Scratch(args) + partial_);
  }

  CudaQueue& queue_;
  const BatchNorm& norm_;
  const bool uses_batch_;  // computes with the statistics of the batch, not with the running ones
  const double momentum_;
  const bool relu_, adds_;
  const int64_t count_, channels_;
  const ColumnSums columns_;
  FloatRoom saved_, scratch_;
  int64_t kept_values_ = 0, kept_inverse_ = 0, kept_mean_ = 0, kept_scale_ = 0;
  int64_t sums_ = 0, partial_ = 0, from_bias_ = 0, from_scale_ = 0;
  std::vector<double> of_workers_;
};

std::unique_ptr<Kernel> MakeBatchNormCuda(const KernelRequest& request, const KernelOffer& offer) {
  if (request.mode != Mode::kEvaluate) {
    static_cast<const BatchNorm&>(*request.layer).CheckEnoughIn(request.inputs[0]);
  }
  return WithElementType(offer.inputs[0].dtype, [&]<class T>() -> std::unique_ptr<Kernel> {
    return std::make_unique<BatchNormCuda<T>>(request, offer.inputs[0].format);
  });
}

std::optional<KernelOffer> OfferBatchNormCuda(const KernelRequest& request) {
  KernelOffer offer = FollowImages(request);
  offer.sums = true;
  return offer;
}

DTRAIN_KERNEL("batch_norm", DeviceKind::kCuda, "direct", OfferBatchNormCuda, MakeBatchNormCuda);

}  // namespace
}  // namespace dtrain
