// Implements convolution on the GPU under the name "cudnn", for every shape that cuDNN supports.  If it has no
// engine for groups, dilation or different sides, our own loops replace it (convolution_direct_cuda.cu).
//
// Images are channels last, as tensor cores require; but plain with `precision: fp32`, since cuDNN 9.19 has no engine for an
// H200 that computes exactly and reads them channels last: those that it lists turn x and y in their workspace, 67 MB of a
// layer of ResNet-18 (tests/cudnn).  The weights stay in plain OIHW order in the arenas; cuDNN reads them in the images'
// format and in its own type, and writes their gradient so (KernelNeeds::params).
//
// Each of the three passes is a graph, whose engine a rule or a plan chooses (convolution_pass_cuda.h).  cuDNN lists
// engines by the whole shape, and an engine may divide sums by it, so a sample's result may differ bitwise in a batch of
// another size.
//
// The forward pass has the bias in its graph, where an engine takes it: by the same kernels with the same knobs as without
// (tests/cudnn), which saves a pass over y.  They take a bias of the images' type alone, so in 16 bits it has another
// form, and so has its gradient, as those of the weights.  Else one pass of ours adds it, with the ReLU, whose NaN cuDNN
// need not keep.  Backward sums the bias's gradient in double in a fixed order.
//
// With `precision: bf16` or fp16 images and their gradients have 16 bits: cuDNN reads and writes them as they are (the
// table in framework/device/README.md).
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <sstream>
#include <string>

#include "framework/core/check.h"
#include "framework/core/error.h"
#include "framework/kernels/cuda/element_types.h"
#include "framework/kernels/cuda/images.h"
#include "framework/nn/kernel.h"
#include "layers/convolution/convolution.h"
#include "layers/convolution/convolution_direct_cuda.h"
#include "layers/convolution/convolution_pass_cuda.h"

namespace dtrain {
namespace {

Format FormatOf(const Device& device) {
  return device.precision == Precision::kFp32 ? Format::kPlain : Format::kChannelsLast;
}

ConvolutionProblem ProblemOf(const KernelRequest& request, const CudaQueue& queue) {
  const auto& layer = static_cast<const Convolution&>(*request.layer);
  return {.x = request.inputs[0],
          .y = request.outputs[0],
          .w = layer.Params()[0].shape,
          .pad = layer.pad(),
          .stride = layer.stride(),
          .dilation = layer.dilation(),
          .type = FactorTypeOf(queue.precision()),
          .tf32 = queue.precision() == Precision::kTf32,
          .format = FormatOf(request.device)};
}

class ConvolutionCuda : public Kernel {
 public:
  explicit ConvolutionCuda(const KernelRequest& request)
      : queue_(QueueOf(request.device)),
        relu_(request.fused_relu),
        training_(request.mode == Mode::kTrain),
        y_shape_(request.outputs[0]),
        problem_(ProblemOf(request, queue_)),
        pixels_(request.device, ChannelsOf(y_shape_, problem_.format),
                ElementsOfPack(SizeOf(problem_.type))),
        forward_(ForwardOf(request, problem_, &with_bias_)) {
    if (training_) {
      weights_.emplace(request.device, problem_, Kind::kWeights, ChoiceOf(request, 2));
      if (problem_.weights_in_arena()) added_weights_ = weights_->Adding();
    }
    if (training_ && request.needs_input_gradient[0]) {
      data_.emplace(request.device, problem_, Kind::kData, ChoiceOf(request, 1));
      added_data_ = data_->Adding();
    }
    size_t most = forward_.workspace_bytes();
    for (const auto* pass : {&weights_, &added_weights_, &data_, &added_data_}) {
      if (*pass) most = std::max(most, (*pass)->workspace_bytes());
    }
    // The workspace comes first, because cuDNN prefers an alignment beyond a cache line's.
    workspace_ = room_.Take(static_cast<int64_t>((most + sizeof(float) - 1) / sizeof(float)));
    if (training_) partial_ = room_.Take(2 * pixels_.partial_sums());
  }

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    needs.scratch_bytes = room_.bytes();
    needs.backward_reads_inputs = true;
    needs.backward_reads_outputs = relu_;
    needs.backward_adds = added_data_.has_value();  // else an inserted kernel adds
    needs.params = {{problem_.format, problem_.type}};
    if (with_bias_) needs.params.emplace_back(Format::kPlain, problem_.type);
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    const Tensor& y = args.outputs[0];
    forward_.Run(args.inputs[0].data, args.params[0].data, y.data, Scratch(args, workspace_),
                 with_bias_ ? args.params[1].data : nullptr);
    if (with_bias_) return;
    AddBias(queue_, y, pixels_.of(), args.params.size() > 1 ? args.params[1].f32() : nullptr,
            relu_);
  }

  void Backward(const KernelArgs& args) override {
    const Tensor& dy = args.output_gradients[0];
    if (relu_) MaskGradient(queue_, args.outputs[0], dy);
    if (args.params.size() > 1) {
      const Tensor& of_bias = args.param_gradients[1];
      SumOverRows(queue_, pixels_, dy, reinterpret_cast<double*>(Scratch(args, partial_)),
                  args.accumulate && of_bias.dtype == DType::kF32, of_bias);
    }
    void* const workspace = Scratch(args, workspace_);
    // What is no gradient of the arena is a copy, which the net adds (KernelNeeds::params).
    const bool adds = args.accumulate && problem_.weights_in_arena();
    const ConvolutionPass& weights = adds ? *added_weights_ : *weights_;
    weights.Run(args.inputs[0].data, args.param_gradients[0].data, dy.data, workspace);
    if (args.input_gradients[0].data == nullptr) return;
    DT_CHECK(data_.has_value()) << "an input gradient that was not requested";
    const ConvolutionPass& pass = args.adds_input_gradient ? *added_data_ : *data_;
    pass.Run(args.input_gradients[0].data, args.params[0].data, dy.data, workspace);
  }

  // The engines of the passes forward, data and weights, "eng1_k2=3+bias,eng0,eng4_k2=0"; empty where a pass is not needed.
  std::string choice() const override {
    std::string engines = forward_.engine() + (with_bias_ ? kWithBias : "");
    if (training_) engines += ',' + (data_ ? data_->engine() : "") + ',' + weights_->engine();
    return engines;
  }

 private:
  using Kind = ConvolutionPass::Kind;

  static constexpr const char* kWithBias = "+bias";

  // Tries a graph with the bias first, unless a plan names an engine without it.  In 16 bits such engines need packs of
  // eight channels: for others cuDNN lists one that does without tensor cores.
  static ConvolutionPass ForwardOf(const KernelRequest& request, const ConvolutionProblem& problem,
                                   bool* with_bias) {
    ConvolutionPass::Choice choice = ChoiceOf(request, 0);
    const bool named = !choice.engine.empty(), names_bias = choice.engine.ends_with(kWithBias);
    if (names_bias) choice.engine.erase(choice.engine.size() - std::strlen(kWithBias));
    const bool packs = problem.type == DType::kF32 || problem.x[1] % 8 == 0;
    const bool has_bias = request.layer->Params().size() > 1;
    *with_bias = has_bias && !request.fused_relu && packs && (names_bias || !named);
    if (names_bias && !*with_bias) choice.engine.clear();  // it is another graph's
    if (*with_bias) {
      ConvolutionProblem fused = problem;
      fused.bias = true;
      try {
        return {request.device, fused, Kind::kForward, choice};
      } catch (const NoEngineError&) {
        *with_bias = false;
        choice.engine.clear();
      }
    }
    return {request.device, problem, Kind::kForward, choice};
  }

  // `pass`: its place in choice().
  static ConvolutionPass::Choice ChoiceOf(const KernelRequest& request, int pass) {
    std::istringstream engines(request.choice);
    ConvolutionPass::Choice choice{.engine = "", .measure = request.measure};
    for (int i = 0; i <= pass; ++i) {
      if (!std::getline(engines, choice.engine, ',')) choice.engine.clear();
    }
    return choice;
  }

  static float* Scratch(const KernelArgs& args, int64_t at) {
    return static_cast<float*>(args.scratch) + at;
  }

  CudaQueue& queue_;
  const bool relu_;
  const bool training_;
  const Shape y_shape_;
  const ConvolutionProblem problem_;
  const ColumnSums pixels_;
  bool with_bias_ = false;  // the forward pass adds it
  const ConvolutionPass forward_;
  std::optional<ConvolutionPass> data_, added_data_, weights_, added_weights_;
  FloatRoom room_;
  int64_t workspace_ = 0, partial_ = 0;
};

std::unique_ptr<Kernel> MakeConvolutionCuda(const KernelRequest& request,
                                            const KernelOffer& offer) {
  const auto& layer = static_cast<const Convolution&>(*request.layer);
  try {
    return std::make_unique<ConvolutionCuda>(request);
  } catch (const NoEngineError& error) {
    if (!layer.IsPlainSquare()) return MakeConvolutionDirectCuda(request, offer);
    throw ShapeError(
        fmt::format("cuDNN does not take a convolution of {} with {} to {}, stride {}, pad {}: {}",
                    request.inputs[0].ToString(), layer.Params()[0].shape.ToString(),
                    request.outputs[0].ToString(), layer.stride().ToString(),
                    layer.pad().ToString(), error.what()),
        "a smaller batch, or device: cpu");
  }
}

std::optional<KernelOffer> OfferConvolutionCuda(const KernelRequest& request) {
  return OfferImages(request, FormatOf(request.device), FactorTypeOf(request.device.precision));
}

DTRAIN_KERNEL("convolution", DeviceKind::kCuda, "cudnn", OfferConvolutionCuda, MakeConvolutionCuda);

}  // namespace
}  // namespace dtrain
