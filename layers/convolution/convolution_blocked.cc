// Implements convolution on the CPU under the name "batch_blocked", for channel counts that fill a channel-blocked
// library's vectors badly (LeNet's 1, 6, 20, 50).
//
// It is chosen for stride 1 and a window of 3 or 5 if rounding the channels up to sixteen would compute at least a
// quarter too much.  The rule does not depend on the batch: fewer than sixteen samples leave lanes idle, but a sample's
// result is the same in any batch.  Neither the blocks nor the threads change the order of a sum; threads divide the
// gradients of weights by output.
#include <algorithm>
#include <cstring>

#include "framework/device/cpu/parallel.h"
#include "framework/nn/kernel.h"
#include "layers/convolution/blocked_loops.h"
#include "layers/convolution/convolution.h"

namespace dtrain {
namespace {

constexpr int64_t kLanes = kBatchBlock;

class ConvolutionBlocked : public Kernel {
 public:
  explicit ConvolutionBlocked(const KernelRequest& request);
  KernelNeeds Needs() const override;
  void Forward(const KernelArgs& args) override;
  void Backward(const KernelArgs& args) override;

 private:
  const float* PadInput(const KernelArgs& args) const;
  void PrepareGradient(const KernelArgs& args) const;
  void BackwardParams(const KernelArgs& args, const float* x) const;
  void BackwardPart(const KernelArgs& args, const float* x, const WeightPart& part,
                    float* sums) const;
  void SumBias(const KernelArgs& args, const WeightPart& part, float* sums) const;
  void BackwardData(const KernelArgs& args) const;

  float* GradientOf(const KernelArgs& args, int64_t block, int64_t output) const {
    return args.output_gradients[0].f32() + (block * conv_.outputs + output) * OutputPlane();
  }
  int64_t InputPlane() const { return conv_.height * conv_.width * kLanes; }
  int64_t OutputPlane() const { return conv_.out_height * conv_.out_width * kLanes; }
  int64_t PaddedFloats() const { return pad_ == 0 ? 0 : blocks_ * conv_.channels * InputPlane(); }
  int64_t RowFloats() const { return conv_.channels * conv_.width * kLanes; }
  // Returns the size of a thread's sums: a vector for each weight and each bias of a part.
  int64_t SumFloats() const {
    return part_outputs_ * (conv_.channels * conv_.kernel * conv_.kernel + 1) * kLanes;
  }

  const Device device_;
  const int64_t batch_;
  const int64_t blocks_;
  const int64_t pad_;
  const bool relu_;
  BlockedConvolution conv_;
  TileShape tile_;
  int64_t parts_;
  int64_t part_outputs_;
};

ConvolutionBlocked::ConvolutionBlocked(const KernelRequest& request)
    : device_(request.device),
      batch_(request.inputs[0][0]),
      blocks_((batch_ + kLanes - 1) / kLanes),
      pad_(static_cast<const Convolution&>(*request.layer).pad().height),
      relu_(request.fused_relu) {
  const Shape& x = request.inputs[0];
  const Shape& y = request.outputs[0];
  conv_ = {.channels = x[1],
           .height = x[2] + 2 * pad_,
           .width = x[3] + 2 * pad_,
           .outputs = y[1],
           .out_height = y[2],
           .out_width = y[3],
           .kernel = static_cast<const Convolution&>(*request.layer).kernel().height};
  tile_ = DTRAIN_ISA_SELECT(device_.isa, ChooseTile)(conv_);
  const int64_t most = DTRAIN_ISA_SELECT(device_.isa, MaxPartOutputs)(conv_.kernel);
  parts_ = std::max((conv_.outputs + most - 1) / most,
                    std::min<int64_t>(device_.threads, conv_.outputs));
  part_outputs_ = (conv_.outputs + parts_ - 1) / parts_;
}

KernelNeeds ConvolutionBlocked::Needs() const {
  KernelNeeds needs;
  const int64_t per_thread = std::max(SumFloats(), RowFloats());
  needs.scratch_bytes = (PaddedFloats() + device_.threads * per_thread) * sizeof(float);
  needs.backward_reads_inputs = true;
  needs.backward_reads_outputs = relu_;
  return needs;
}

// Returns the input with its padding, in scratch memory, or the input itself if the pad is 0.
const float* ConvolutionBlocked::PadInput(const KernelArgs& args) const {
  const float* x = args.inputs[0].f32();
  if (pad_ == 0) return x;
  float* const padded = static_cast<float*>(args.scratch);
  const int64_t row = (conv_.width - 2 * pad_) * kLanes;
  const int64_t side = pad_ * kLanes;
  ParallelFor(device_.threads, blocks_ * conv_.channels, [&](int64_t plane) {
    float* to = padded + plane * InputPlane();
    const float* from = x + plane * (conv_.height - 2 * pad_) * row;
    to = std::fill_n(to, pad_ * conv_.width * kLanes, 0.0f);
    for (int64_t r = 2 * pad_; r < conv_.height; ++r, from += row) {
      to = std::fill_n(to, side, 0.0f);
      to = std::copy_n(from, row, to);
      to = std::fill_n(to, side, 0.0f);
    }
    std::fill_n(to, pad_ * conv_.width * kLanes, 0.0f);
  });
  return padded;
}

void ConvolutionBlocked::Forward(const KernelArgs& args) {
  const float* const x = PadInput(args);
  const float* const w = args.params[0].f32();
  const float* const bias = args.params.size() > 1 ? args.params[1].f32() : nullptr;
  ParallelFor(device_.threads, blocks_ * conv_.out_height, [&](int64_t i) {
    const int64_t block = i / conv_.out_height;
    DTRAIN_ISA_SELECT(device_.isa, ForwardRow)
    (conv_, tile_, x + block * conv_.channels * InputPlane(), w, bias, relu_, i % conv_.out_height,
     args.outputs[0].f32() + block * conv_.outputs * OutputPlane());
  });
}

void ConvolutionBlocked::Backward(const KernelArgs& args) {
  PrepareGradient(args);
  BackwardParams(args, PadInput(args));
  if (args.input_gradients[0].data != nullptr) BackwardData(args);
}

// Sets the gradient to 0 where the fused ReLU's output is 0, and in the lanes beyond the batch, whose contents are
// undefined, so that sums may include them.
void ConvolutionBlocked::PrepareGradient(const KernelArgs& args) const {
  const int64_t used = batch_ - (blocks_ - 1) * kLanes;
  ParallelFor(device_.threads, blocks_ * conv_.outputs, [&](int64_t plane) {
    float* const dy = args.output_gradients[0].f32() + plane * OutputPlane();
    if (relu_) {
      const float* const y = args.outputs[0].f32() + plane * OutputPlane();
      for (int64_t i = 0; i < OutputPlane(); ++i) dy[i] = y[i] > 0 ? dy[i] : 0;
    }
    if (used == kLanes || plane < (blocks_ - 1) * conv_.outputs) return;
    for (int64_t i = 0; i < OutputPlane(); i += kLanes) {
      for (int64_t lane = used; lane < kLanes; ++lane) dy[i + lane] = 0;
    }
  });
}

void ConvolutionBlocked::BackwardParams(const KernelArgs& args, const float* x) const {
  float* const free = static_cast<float*>(args.scratch) + PaddedFloats();
  ParallelFor(device_.threads, device_.threads, [&](int64_t thread) {
    for (int64_t part = thread; part < parts_; part += device_.threads) {
      const int64_t first = part * part_outputs_;
      if (first >= conv_.outputs) break;
      BackwardPart(
          args, x,
          {.first_output = first, .outputs = std::min(part_outputs_, conv_.outputs - first)},
          free + thread * SumFloats());
    }
  });
}

void ConvolutionBlocked::BackwardPart(const KernelArgs& args, const float* x,
                                      const WeightPart& part, float* sums) const {
  std::memset(sums, 0, SumFloats() * sizeof(float));
  float* const bias_sums = sums + SumFloats() - part_outputs_ * kLanes;
  for (int64_t block = 0; block < blocks_; ++block) {
    if (args.params.size() > 1) {
      for (int64_t o = 0; o < part.outputs; ++o) {
        DTRAIN_ISA_SELECT(device_.isa, AddPixels)
        (GradientOf(args, block, part.first_output + o), OutputPlane() / kLanes,
         bias_sums + o * kLanes);
      }
    }
    DTRAIN_ISA_SELECT(device_.isa, AddWeightSums)
    (conv_, x + block * conv_.channels * InputPlane(), GradientOf(args, block, 0), part, sums);
  }
  DTRAIN_ISA_SELECT(device_.isa, FinishWeightSums)
  (conv_, part, sums, args.accumulate, args.param_gradients[0].f32());
  if (args.params.size() > 1) SumBias(args, part, bias_sums);
}

void ConvolutionBlocked::SumBias(const KernelArgs& args, const WeightPart& part,
                                 float* sums) const {
  float* const db = args.param_gradients[1].f32() + part.first_output;
  for (int64_t o = 0; o < part.outputs; ++o, sums += kLanes) {
    float sum = 0;
    for (int64_t lane = 0; lane < kLanes; ++lane) sum += sums[lane];
    db[o] = args.accumulate ? db[o] + sum : sum;
  }
}

// Computes the gradient by the input.  With padding, each thread computes a padded row in scratch memory and copies the
// part inside the image.
void ConvolutionBlocked::BackwardData(const KernelArgs& args) const {
  const int64_t rows = conv_.height - 2 * pad_;
  const int64_t row_floats = (conv_.width - 2 * pad_) * kLanes;
  float* const free = static_cast<float*>(args.scratch) + PaddedFloats();
  ParallelFor(device_.threads, device_.threads, [&](int64_t thread) {
    for (int64_t i = thread; i < blocks_ * rows; i += device_.threads) {
      const int64_t block = i / rows, row = i % rows;
      const float* const dy = GradientOf(args, block, 0);
      float* const dx =
          args.input_gradients[0].f32() + (block * conv_.channels * rows + row) * row_floats;
      const auto compute = DTRAIN_ISA_SELECT(device_.isa, BackwardDataRow);
      if (pad_ == 0) {
        compute(conv_, dy, args.params[0].f32(), row, dx, InputPlane());
        continue;
      }
      float* const padded = free + thread * RowFloats();
      compute(conv_, dy, args.params[0].f32(), row + pad_, padded, conv_.width * kLanes);
      for (int64_t c = 0; c < conv_.channels; ++c) {
        std::copy_n(padded + (c * conv_.width + pad_) * kLanes, row_floats,
                    dx + c * rows * row_floats);
      }
    }
  });
}

// Returns the ratio of computed to needed products if channels are rounded up to sixteen.  Fewer than four input
// channels are not counted, since libraries have a special kernel for them.
double Waste(int64_t channels, int64_t outputs) {
  const auto rounded = [](int64_t n) { return static_cast<double>((n + 15) / 16 * 16); };
  const double waste = rounded(outputs) / static_cast<double>(outputs);
  return channels < 4 ? waste : waste * rounded(channels) / static_cast<double>(channels);
}

std::optional<KernelOffer> OfferConvolutionBlocked(const KernelRequest& request) {
  const auto& layer = static_cast<const Convolution&>(*request.layer);
  const int64_t kernel = layer.kernel().height;
  if (!layer.IsPlainSquare() || layer.stride().height != 1) return std::nullopt;
  if (kernel != 3 && kernel != 5) return std::nullopt;
  KernelOffer offer;
  offer.inputs = {Format::kBatchBlocked};
  offer.outputs = {Format::kBatchBlocked};
  offer.preference = Waste(layer.channels(), layer.outputs()) >= 1.25 ? 10 : -10;
  return offer;
}

std::unique_ptr<Kernel> MakeConvolutionBlocked(const KernelRequest& request, const KernelOffer&) {
  return std::make_unique<ConvolutionBlocked>(request);
}

DTRAIN_KERNEL("convolution", DeviceKind::kCpu, "batch_blocked", OfferConvolutionBlocked,
              MakeConvolutionBlocked);

}  // namespace
}  // namespace dtrain
