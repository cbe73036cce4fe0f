// Implements convolution on the GPU under the name "cudnn", for every shape that cuDNN supports.  If it has no
// algorithm for groups, dilation or different sides, our own loops replace it (convolution_direct_cuda.cu).
//
// Images are channels last, as tensor cores require.  The weights stay in plain OIHW order in the arenas; cuDNN reads
// them channels last and in its own type, and writes their gradient so (KernelNeeds::params).
//
// Algorithms are chosen by a fixed rule, never by cuDNN's heuristics or timings: those deterministic ones that it has
// for channels_last images. cuDNN chooses the kernel for an algorithm from the whole shape, so a sample's result may
// differ bitwise in a batch of another size.
//
// The bias is not left to cuDNN: Forward adds it in one pass with the ReLU, Backward sums its gradient in double in a
// fixed order. cuDNN guarantees neither, and its bias additions are reported to be many times slower for channels_last
// than for plain images.
//
// With `precision: bf16` or fp16 images and their gradients have 16 bits: cuDNN reads and writes them as they are (the
// table in framework/device/README.md).
#include <fmt/format.h>

#include "framework/core/check.h"
#include "framework/core/error.h"
#include "framework/kernels/cuda/element_types.h"
#include "framework/kernels/cuda/images.h"
#include "framework/nn/kernel.h"
#include "layers/convolution/convolution.h"
#include "layers/convolution/convolution_direct_cuda.h"

namespace dtrain {
namespace {

using TensorDesc = Owned<cudnnTensorDescriptor_t, &cudnnDestroyTensorDescriptor>;
using FilterDesc = Owned<cudnnFilterDescriptor_t, &cudnnDestroyFilterDescriptor>;
using ConvolutionDesc = Owned<cudnnConvolutionDescriptor_t, &cudnnDestroyConvolutionDescriptor>;

cudnnDataType_t TypeOf(DType type) {
  if (type == DType::kBF16) return CUDNN_DATA_BFLOAT16;
  return type == DType::kF16 ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT;
}

TensorDesc ImagesDesc(const Shape& shape, cudnnDataType_t type) {
  cudnnTensorDescriptor_t made = nullptr;
  DT_CUDA(cudnnCreateTensorDescriptor, &made);
  TensorDesc desc(made);
  DT_CUDA(cudnnSetTensor4dDescriptor, made, CUDNN_TENSOR_NHWC, type, ToInt(shape[0]),
          ToInt(shape[1]), ToInt(shape[2]), ToInt(shape[3]));
  return desc;
}

FilterDesc WeightsDesc(const Shape& shape, cudnnDataType_t type) {
  cudnnFilterDescriptor_t made = nullptr;
  DT_CUDA(cudnnCreateFilterDescriptor, &made);
  FilterDesc desc(made);
  DT_CUDA(cudnnSetFilter4dDescriptor, made, type, CUDNN_TENSOR_NHWC, ToInt(shape[0]),
          ToInt(shape[1]), ToInt(shape[2]), ToInt(shape[3]));
  return desc;
}

ConvolutionDesc WindowDesc(const Convolution& layer, Precision precision) {
  cudnnConvolutionDescriptor_t made = nullptr;
  DT_CUDA(cudnnCreateConvolutionDescriptor, &made);
  ConvolutionDesc desc(made);
  const HeightWidth &pad = layer.pad(), &stride = layer.stride(), &dilation = layer.dilation();
  DT_CUDA(cudnnSetConvolution2dDescriptor, made, ToInt(pad.height), ToInt(pad.width),
          ToInt(stride.height), ToInt(stride.width), ToInt(dilation.height), ToInt(dilation.width),
          CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
  DT_CUDA(cudnnSetConvolutionGroupCount, made, ToInt(layer.groups()));
  // Tensor cores round fp32 factors to TF32; those of 16 bits are exact already.
  DT_CUDA(cudnnSetConvolutionMathType, made,
          precision == Precision::kFp32 ? CUDNN_FMA_MATH : CUDNN_TENSOR_OP_MATH);
  return desc;
}

// The algorithm and workspace of one of the three passes.
template <class Algorithm>
struct Pass {
  Algorithm algorithm = {};
  size_t workspace = 0;  // bytes
};

// Returns the first algorithm that cuDNN supports for these shapes; it reports an unsupported one as "not supported" or
// as "bad parameter". ask(algorithm, &workspace) makes the call that is named `call` in error messages.  Throws if none
// is supported.
template <class Algorithm, class Ask>
Pass<Algorithm> FirstOf(std::initializer_list<Algorithm> algorithms, const char* call,
                        const Ask& ask) {
  Pass<Algorithm> pass;
  cudnnStatus_t status = CUDNN_STATUS_NOT_SUPPORTED;
  for (const Algorithm algorithm : algorithms) {
    pass.algorithm = algorithm;
    status = ask(algorithm, &pass.workspace);
    const auto category = CUDNN_STATUS_CATEGORY(status);
    if (category != CUDNN_STATUS_NOT_SUPPORTED && category != CUDNN_STATUS_BAD_PARAM) break;
  }
  CheckCall(status, call);
  return pass;
}

constexpr float kOne = 1, kZero = 0;  // cuDNN's alpha and beta

class ConvolutionCuda : public Kernel {
 public:
  explicit ConvolutionCuda(const KernelRequest& request)
      : queue_(QueueOf(request.device)),
        relu_(request.fused_relu),
        training_(request.mode == Mode::kTrain),
        wants_dx_(training_ && request.needs_input_gradient[0]),
        y_shape_(request.outputs[0]),
        w_shape_(request.layer->Params()[0].shape),
        type_(FactorTypeOf(queue_.precision())),
        pixels_(request.device, y_shape_.count() / y_shape_[1], y_shape_[1],
                ElementsOfPack(SizeOf(type_))),
        x_(ImagesDesc(request.inputs[0], TypeOf(type_))),
        y_(ImagesDesc(y_shape_, TypeOf(type_))),
        w_(WeightsDesc(w_shape_, TypeOf(type_))),
        window_(WindowDesc(static_cast<const Convolution&>(*request.layer), queue_.precision())) {
    ChooseAlgorithms();
    // The workspace comes first, because cuDNN prefers an alignment beyond a cache line's.
    const size_t most = std::max({forward_.workspace, data_.workspace, weights_.workspace});
    workspace_ = room_.Take(static_cast<int64_t>((most + sizeof(float) - 1) / sizeof(float)));
    if (training_) partial_ = room_.Take(2 * pixels_.partial_sums());
  }

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    needs.scratch_bytes = room_.bytes();
    needs.backward_reads_inputs = true;
    needs.backward_reads_outputs = relu_;
    needs.backward_adds = true;
    needs.params = {{Format::kChannelsLast, type_}};
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    const Tensor& y = args.outputs[0];
    DT_CUDA(cudnnConvolutionForward, queue_.dnn(), &kOne, x_.get(), args.inputs[0].data, w_.get(),
            args.params[0].data, window_.get(), forward_.algorithm, Scratch(args, workspace_),
            forward_.workspace, &kZero, y_.get(), y.data);
    AddBias(queue_, y, y_shape_[1], args.params.size() > 1 ? args.params[1].f32() : nullptr, relu_);
  }

  void Backward(const KernelArgs& args) override {
    const Tensor& dy = args.output_gradients[0];
    if (relu_) MaskGradient(queue_, args.outputs[0], dy);
    if (args.params.size() > 1) {
      SumOverRows(queue_, pixels_, dy, reinterpret_cast<double*>(Scratch(args, partial_)),
                  args.accumulate, args.param_gradients[1].f32());
    }
    DT_CUDA(cudnnConvolutionBackwardFilter, queue_.dnn(), &kOne, x_.get(), args.inputs[0].data,
            y_.get(), dy.data, window_.get(), weights_.algorithm, Scratch(args, workspace_),
            weights_.workspace, &kZero, w_.get(), args.param_gradients[0].data);
    if (args.input_gradients[0].data == nullptr) return;
    DT_CHECK(wants_dx_) << "an input gradient that was not requested";
    DT_CUDA(cudnnConvolutionBackwardData, queue_.dnn(), &kOne, w_.get(), args.params[0].data,
            y_.get(), dy.data, window_.get(), data_.algorithm, Scratch(args, workspace_),
            data_.workspace, args.adds_input_gradient ? &kOne : &kZero, x_.get(),
            args.input_gradients[0].data);
  }

 private:
  void ChooseAlgorithms() {
    forward_ =
        FirstOf({CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
                 CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM},
                "cudnnGetConvolutionForwardWorkspaceSize", [&](auto algorithm, size_t* bytes) {
                  return cudnnGetConvolutionForwardWorkspaceSize(
                      queue_.dnn(), x_.get(), w_.get(), window_.get(), y_.get(), algorithm, bytes);
                });
    if (!training_) return;
    weights_ = FirstOf(
        {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1}, "cudnnGetConvolutionBackwardFilterWorkspaceSize",
        [&](auto algorithm, size_t* bytes) {
          return cudnnGetConvolutionBackwardFilterWorkspaceSize(
              queue_.dnn(), x_.get(), y_.get(), window_.get(), w_.get(), algorithm, bytes);
        });
    if (!wants_dx_) return;
    data_ =
        FirstOf({CUDNN_CONVOLUTION_BWD_DATA_ALGO_1}, "cudnnGetConvolutionBackwardDataWorkspaceSize",
                [&](auto algorithm, size_t* bytes) {
                  return cudnnGetConvolutionBackwardDataWorkspaceSize(
                      queue_.dnn(), w_.get(), y_.get(), window_.get(), x_.get(), algorithm, bytes);
                });
  }

  static float* Scratch(const KernelArgs& args, int64_t at) {
    return static_cast<float*>(args.scratch) + at;
  }

  CudaQueue& queue_;
  const bool relu_;
  const bool training_;
  const bool wants_dx_;
  const Shape y_shape_, w_shape_;
  const DType type_;  // of images and of the weights' form
  const ColumnSums pixels_;
  const TensorDesc x_, y_;
  const FilterDesc w_;
  const ConvolutionDesc window_;
  Pass<cudnnConvolutionFwdAlgo_t> forward_;
  Pass<cudnnConvolutionBwdFilterAlgo_t> weights_;
  Pass<cudnnConvolutionBwdDataAlgo_t> data_;
  FloatRoom room_;
  int64_t workspace_ = 0, partial_ = 0;
};

std::unique_ptr<Kernel> MakeConvolutionCuda(const KernelRequest& request,
                                            const KernelOffer& offer) {
  const auto& layer = static_cast<const Convolution&>(*request.layer);
  try {
    return std::make_unique<ConvolutionCuda>(request);
  } catch (const Error& error) {
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
  return OfferImages(request, FactorTypeOf(request.device.precision));
}

DTRAIN_KERNEL("convolution", DeviceKind::kCuda, "cudnn", OfferConvolutionCuda, MakeConvolutionCuda);

}  // namespace
}  // namespace dtrain
