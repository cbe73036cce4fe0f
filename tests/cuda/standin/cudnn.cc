// cuDNN of the stand-in (stream.h): naive loops that follow the given descriptors.  It is strict:
// descriptors that do not fit together, or operands outside the device's memory, stop the program.
#include <cuda_bf16.h>
#include <cudnn.h>

#include <cstring>
#include <vector>

#include "tests/cuda/standin/stream.h"

using dtrain::standin::OnDevice;
using dtrain::standin::Refuse;

struct cudnnContext {
  cudaStream_t stream = nullptr;
};

// Four extents in the order N, C, H, W (for a filter: outputs, channels, height, width).  Channels
// are last in memory; values are fp32 or bf16.
struct cudnnTensorStruct {
  int64_t n = 0, c = 0, h = 0, w = 0;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;

  int64_t count() const { return n * c * h * w; }
  size_t bytes() const {
    return static_cast<size_t>(count()) * (type == CUDNN_DATA_FLOAT ? sizeof(float) : 2);
  }
  int64_t At(int64_t image, int64_t row, int64_t column) const {
    return ((image * h + row) * w + column) * c;
  }
};
struct cudnnFilterStruct : cudnnTensorStruct {};

struct cudnnConvolutionStruct {
  int64_t pad_height = 0, pad_width = 0, stride_height = 0, stride_width = 0;
  int64_t dilation_height = 1, dilation_width = 1;
  int64_t groups = 1;
  bool has_math_type = false;
};

namespace {

constexpr int64_t kMaxElements = int64_t{1} << 31;  // per tensor

cudnnStatus_t SetExtents(cudnnTensorFormat_t format, cudnnDataType_t type,
                         cudnnTensorStruct extents, cudnnTensorStruct* to) {
  if (format != CUDNN_TENSOR_NHWC) return CUDNN_STATUS_NOT_SUPPORTED;
  if (type != CUDNN_DATA_FLOAT && type != CUDNN_DATA_BFLOAT16 && type != CUDNN_DATA_HALF) {
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
  extents.type = type;
  if (extents.n < 1 || extents.c < 1 || extents.h < 1 || extents.w < 1) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  if (extents.count() >= kMaxElements) return CUDNN_STATUS_NOT_SUPPORTED;
  *to = extents;
  return CUDNN_STATUS_SUCCESS;
}

// A convolution: y [N, H', W', O] of x [N, H, W, C] and w [O, KH, KW, C / groups].
struct Problem {
  cudnnTensorStruct x, w, y;
  cudnnConvolutionStruct window;

  bool Fits() const {
    const int64_t height = (w.h - 1) * window.dilation_height + 1;
    const int64_t width = (w.w - 1) * window.dilation_width + 1;
    return x.type == w.type && x.type == y.type && x.n == y.n && x.c == w.c * window.groups &&
           w.n == y.c && w.n % window.groups == 0 && window.has_math_type &&
           y.h == (x.h + 2 * window.pad_height - height) / window.stride_height + 1 &&
           y.w == (x.w + 2 * window.pad_width - width) / window.stride_width + 1;
  }

  // Calls taps(y_offset, x_offset, w_offset) for each pixel of y and each tap that meets a pixel of
  // x.  The offsets are those of the first channel; w_offset is within one output's weights.
  // Output o reads the channels of x from FirstChannel(o).
  template <class Taps>
  void ForEachTap(const Taps& taps) const {
    for (int64_t i = 0; i < y.n * y.h * y.w; ++i) {
      const int64_t image = i / (y.h * y.w);
      const int64_t top = i / y.w % y.h * window.stride_height - window.pad_height;
      const int64_t left = i % y.w * window.stride_width - window.pad_width;
      for (int64_t tap = 0; tap < w.h * w.w; ++tap) {
        const int64_t row = top + tap / w.w * window.dilation_height;
        const int64_t column = left + tap % w.w * window.dilation_width;
        if (row < 0 || row >= x.h || column < 0 || column >= x.w) continue;
        taps(i * y.c, x.At(image, row, column), tap * w.c);
      }
    }
  }
  int64_t OutputWeights() const { return w.h * w.w * w.c; }
  int64_t FirstChannel(int64_t output) const { return output / (w.n / window.groups) * w.c; }
};

void Forward(const Problem& p, const float* x, const float* w, double* y) {
  p.ForEachTap([&](int64_t out, int64_t in, int64_t tap) {
    for (int64_t o = 0; o < p.y.c; ++o) {
      const float* const weights = w + o * p.OutputWeights() + tap;
      const float* const pixel = x + in + p.FirstChannel(o);
      double sum = 0;
      for (int64_t c = 0; c < p.w.c; ++c) sum += static_cast<double>(pixel[c]) * weights[c];
      y[out + o] += sum;
    }
  });
}

void BackwardData(const Problem& p, const float* w, const float* dy, double* dx) {
  p.ForEachTap([&](int64_t out, int64_t in, int64_t tap) {
    for (int64_t o = 0; o < p.y.c; ++o) {
      const double gradient = dy[out + o];
      const float* const weights = w + o * p.OutputWeights() + tap;
      double* const pixel = dx + in + p.FirstChannel(o);
      for (int64_t c = 0; c < p.w.c; ++c) pixel[c] += gradient * weights[c];
    }
  });
}

void BackwardFilter(const Problem& p, const float* x, const float* dy, double* dw) {
  p.ForEachTap([&](int64_t out, int64_t in, int64_t tap) {
    for (int64_t o = 0; o < p.y.c; ++o) {
      const double gradient = dy[out + o];
      double* const weights = dw + o * p.OutputWeights() + tap;
      const float* const pixel = x + in + p.FirstChannel(o);
      for (int64_t c = 0; c < p.w.c; ++c) weights[c] += gradient * pixel[c];
    }
  });
}

// The workspace that a pass was given, and below it the size that each pass requires, different for
// each.
struct Workspace {
  void* memory;
  size_t bytes;
};
size_t ForwardBytes(const Problem& p) { return static_cast<size_t>(p.w.count()) * 4 + 20; }
size_t DataBytes(const Problem& p) { return static_cast<size_t>(p.x.c) * 64 + 4; }
size_t FilterBytes(const Problem& p) { return static_cast<size_t>(p.y.count()) * 4; }

struct Operand {
  const void* memory;
  const cudnnTensorStruct& tensor;
};

float Get(const cudnnTensorStruct& tensor, const void* memory, int64_t i) {
  if (tensor.type == CUDNN_DATA_HALF) return __half2float(static_cast<const __half*>(memory)[i]);
  return tensor.type == CUDNN_DATA_BFLOAT16
             ? __bfloat162float(static_cast<const __nv_bfloat16*>(memory)[i])
             : static_cast<const float*>(memory)[i];
}
void Set(const cudnnTensorStruct& tensor, void* memory, int64_t i, float value) {
  if (tensor.type == CUDNN_DATA_BFLOAT16) {
    static_cast<__nv_bfloat16*>(memory)[i] = __float2bfloat16_rn(value);
  } else if (tensor.type == CUDNN_DATA_HALF) {
    static_cast<__half*>(memory)[i] = __float2half_rn(value);
  } else {
    static_cast<float*>(memory)[i] = value;
  }
}

std::vector<float> Floats(const cudnnTensorStruct& tensor, const void* memory) {
  std::vector<float> floats(static_cast<size_t>(tensor.count()));
  for (size_t i = 0; i < floats.size(); ++i)
    floats[i] = Get(tensor, memory, static_cast<int64_t>(i));
  return floats;
}

// Once the stream gets there, overwrites the workspace and computes result = alpha * pass(sums) +
// beta * result.
template <class Pass>
cudnnStatus_t Run(cudnnHandle_t handle, const char* call, const Problem& problem,
                  const Operand (&operands)[3], Workspace workspace, size_t wanted,
                  const void* alpha, const void* beta, const Pass& pass) {
  if (!problem.Fits()) Refuse(call, "the descriptors do not fit together");
  if (workspace.bytes < wanted) Refuse(call, "the workspace is smaller than was asked for");
  if (!OnDevice(workspace.memory, workspace.bytes)) Refuse(call, "the workspace lies elsewhere");
  for (const Operand& operand : operands) {
    if (!OnDevice(operand.memory, operand.tensor.bytes())) {
      Refuse(call, "an operand is no memory of the device of that size");
    }
  }
  const float one = *static_cast<const float*>(alpha), old = *static_cast<const float*>(beta);
  const Operand &first = operands[0], &second = operands[1];
  void* const result = const_cast<void*>(operands[2].memory);
  const auto bytes = [](const Operand& operand) {
    return dtrain::Reads(static_cast<const char*>(operand.memory),
                         static_cast<int64_t>(operand.tensor.bytes()));
  };
  const dtrain::Access written = dtrain::Stores(
      static_cast<char*>(result), static_cast<int64_t>(operands[2].tensor.bytes()), old != 0);
  // The bytes of the workspace are not counted: what the real library does with its own is unknown.
  const dtrain::Access room =
      dtrain::Writes(static_cast<char*>(workspace.memory), static_cast<int64_t>(workspace.bytes))
          .Only(0);
  dtrain::standin::LaunchKernel(handle->stream, call, {bytes(first), bytes(second), written, room},
                                [=, a = first.memory, a_desc = first.tensor, b = second.memory,
                                 b_desc = second.tensor, desc = operands[2].tensor] {
                                  std::memset(workspace.memory, 0xff, workspace.bytes);
                                  std::vector<double> sums(static_cast<size_t>(desc.count()));
                                  pass(Floats(a_desc, a).data(), Floats(b_desc, b).data(),
                                       sums.data());
                                  for (size_t i = 0; i < sums.size(); ++i) {
                                    const auto at = static_cast<int64_t>(i);
                                    const double was = old == 0 ? 0 : old * Get(desc, result, at);
                                    Set(desc, result, at, static_cast<float>(one * sums[i] + was));
                                  }
                                  std::memset(workspace.memory, 0xff, workspace.bytes);
                                });
  return CUDNN_STATUS_SUCCESS;
}

// Create and Destroy implement a descriptor's two functions.
template <class Struct>
cudnnStatus_t Create(Struct** made) {
  *made = new Struct;
  return CUDNN_STATUS_SUCCESS;
}
template <class Struct>
cudnnStatus_t Destroy(Struct* made) {
  delete made;
  return CUDNN_STATUS_SUCCESS;
}

// The stand-in has only these algorithms.  One lacks images of one channel, another lacks groups
// with dilation, so that the module must choose another algorithm in these cases.
bool Supports(const Problem& p, cudnnConvolutionFwdAlgo_t algorithm) {
  return algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM ||
         (algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM && p.x.c > 1);
}

bool Supports(const Problem& p, cudnnConvolutionBwdFilterAlgo_t algorithm) {
  const bool dilated = p.window.dilation_height > 1 || p.window.dilation_width > 1;
  return algorithm == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1 && !(p.window.groups > 1 && dilated);
}

cudnnStatus_t AnswerBytes(const Problem& problem, bool supported, size_t wanted, size_t* bytes) {
  if (!problem.Fits()) return CUDNN_STATUS_BAD_PARAM;
  if (!supported) return CUDNN_STATUS_NOT_SUPPORTED;
  *bytes = wanted;
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

void cudnnGetLastErrorString(char* text, size_t bytes) {
  if (bytes > 0) *text = 0;
}

size_t cudnnGetVersion() { return CUDNN_VERSION; }
const char* cudnnGetErrorString(cudnnStatus_t) { return "a status of the stand-in"; }

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) { return Create(handle); }
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) { return Destroy(handle); }
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* made) { return Create(made); }
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t made) { return Destroy(made); }
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t desc, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c, int h, int w) {
  return SetExtents(format, type, {n, c, h, w}, desc);
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* made) { return Create(made); }
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t made) { return Destroy(made); }
cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t desc, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w) {
  return SetExtents(format, type, {k, c, h, w}, desc);
}

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* made) {
  return Create(made);
}
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t made) {
  return Destroy(made);
}
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t desc, int pad_h,
                                              int pad_w, int u, int v, int dilation_h,
                                              int dilation_w, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t type) {
  if (pad_h < 0 || pad_w < 0 || u < 1 || v < 1 || dilation_h < 1 || dilation_w < 1) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  if (mode != CUDNN_CROSS_CORRELATION || type != CUDNN_DATA_FLOAT) {
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
  *desc = {pad_h, pad_w, u, v, dilation_h, dilation_w};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t desc, int groups) {
  if (groups < 1) return CUDNN_STATUS_BAD_PARAM;
  desc->groups = groups;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t desc, cudnnMathType_t) {
  desc->has_math_type = true;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t, const cudnnTensorDescriptor_t x, const cudnnFilterDescriptor_t w,
    const cudnnConvolutionDescriptor_t window, const cudnnTensorDescriptor_t y,
    cudnnConvolutionFwdAlgo_t algorithm, size_t* bytes) {
  const Problem problem = {*x, *w, *y, *window};
  return AnswerBytes(problem, Supports(problem, algorithm), ForwardBytes(problem), bytes);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t, const cudnnFilterDescriptor_t w, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t window, const cudnnTensorDescriptor_t dx,
    cudnnConvolutionBwdDataAlgo_t algorithm, size_t* bytes) {
  const Problem problem = {*dx, *w, *dy, *window};
  return AnswerBytes(problem, algorithm == CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, DataBytes(problem),
                     bytes);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t, const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t window, const cudnnFilterDescriptor_t dw,
    cudnnConvolutionBwdFilterAlgo_t algorithm, size_t* bytes) {
  const Problem problem = {*x, *dw, *dy, *window};
  return AnswerBytes(problem, Supports(problem, algorithm), FilterBytes(problem), bytes);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha,
                                      const cudnnTensorDescriptor_t x_desc, const void* x,
                                      const cudnnFilterDescriptor_t w_desc, const void* w,
                                      const cudnnConvolutionDescriptor_t window,
                                      cudnnConvolutionFwdAlgo_t algorithm, void* workspace,
                                      size_t bytes, const void* beta,
                                      const cudnnTensorDescriptor_t y_desc, void* y) {
  const Problem p = {*x_desc, *w_desc, *y_desc, *window};
  if (!Supports(p, algorithm)) return CUDNN_STATUS_NOT_SUPPORTED;
  return Run(handle, "cudnnConvolutionForward", p, {{x, p.x}, {w, p.w}, {y, p.y}},
             {workspace, bytes}, ForwardBytes(p), alpha, beta,
             [=](const float* x, const float* w, double* sums) { Forward(p, x, w, sums); });
}
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha,
                                           const cudnnFilterDescriptor_t w_desc, const void* w,
                                           const cudnnTensorDescriptor_t dy_desc, const void* dy,
                                           const cudnnConvolutionDescriptor_t window,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void* workspace,
                                           size_t bytes, const void* beta,
                                           const cudnnTensorDescriptor_t dx_desc, void* dx) {
  const Problem p = {*dx_desc, *w_desc, *dy_desc, *window};
  if (algorithm != CUDNN_CONVOLUTION_BWD_DATA_ALGO_1) return CUDNN_STATUS_NOT_SUPPORTED;
  return Run(handle, "cudnnConvolutionBackwardData", p, {{w, p.w}, {dy, p.y}, {dx, p.x}},
             {workspace, bytes}, DataBytes(p), alpha, beta,
             [=](const float* w, const float* dy, double* sums) { BackwardData(p, w, dy, sums); });
}
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* alpha,
                                             const cudnnTensorDescriptor_t x_desc, const void* x,
                                             const cudnnTensorDescriptor_t dy_desc, const void* dy,
                                             const cudnnConvolutionDescriptor_t window,
                                             cudnnConvolutionBwdFilterAlgo_t algorithm,
                                             void* workspace, size_t bytes, const void* beta,
                                             const cudnnFilterDescriptor_t dw_desc, void* dw) {
  const Problem p = {*x_desc, *dw_desc, *dy_desc, *window};
  if (!Supports(p, algorithm)) return CUDNN_STATUS_NOT_SUPPORTED;
  return Run(
      handle, "cudnnConvolutionBackwardFilter", p, {{x, p.x}, {dy, p.y}, {dw, p.w}},
      {workspace, bytes}, FilterBytes(p), alpha, beta,
      [=](const float* x, const float* dy, double* sums) { BackwardFilter(p, x, dy, sums); });
}

}  // extern "C"
