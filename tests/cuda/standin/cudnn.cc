// cuDNN's graph API of the stand-in (stream.h), as far as convolutions need it: descriptors that hold what they are given,
// a catalogue of engines, and naive loops.  It is strict: operands outside the device's memory stop the program, and so
// does an engine that the module must not take.
#include <cuda_bf16.h>
#include <cudnn.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/cuda/standin/stream.h"

using dtrain::standin::OnDevice;
using dtrain::standin::Refuse;

struct cudnnContext {
  cudaStream_t stream = nullptr;
};

namespace {

constexpr int64_t kMaxElements = int64_t{1} << 31;  // per tensor
constexpr size_t kTooMuch = size_t{3} << 30;        // bytes of workspace, of one engine

// Node holds what a descriptor is given: values and other descriptors, by the names of attributes.  A descriptor that is
// given to another one lives as long as that.
struct Node {
  cudnnBackendDescriptorType_t type = {};
  bool finalized = false;
  std::map<cudnnBackendAttributeName_t, std::vector<std::byte>> values;
  std::map<cudnnBackendAttributeName_t, std::vector<std::shared_ptr<Node>>> nodes;

  template <class T>
  std::vector<T> All(cudnnBackendAttributeName_t name) const {
    const auto it = values.find(name);
    if (it == values.end()) return {};
    std::vector<T> all(it->second.size() / sizeof(T));
    std::memcpy(all.data(), it->second.data(), all.size() * sizeof(T));
    return all;
  }
  template <class T>
  T One(cudnnBackendAttributeName_t name, T otherwise = {}) const {
    const std::vector<T> all = All<T>(name);
    return all.empty() ? otherwise : all[0];
  }
  template <class T>
  void Set(cudnnBackendAttributeName_t name, T value) {
    std::vector<std::byte>& bytes = values[name];
    bytes.resize(sizeof(T));
    std::memcpy(bytes.data(), &value, sizeof(T));
  }
  std::shared_ptr<Node> Only(cudnnBackendAttributeName_t name) const {
    const auto it = nodes.find(name);
    return it == nodes.end() || it->second.empty() ? nullptr : it->second[0];
  }
};

struct Descriptor {
  std::shared_ptr<Node> node;
};
std::shared_ptr<Node>& NodeOf(cudnnBackendDescriptor_t descriptor) {
  return static_cast<Descriptor*>(descriptor)->node;
}

// Four extents in the order N, C, H, W (for a filter: outputs, channels, height, width).  Channels are last in memory, or
// images plain; what is computed from them has channels last.
struct Images {
  int64_t n = 0, c = 0, h = 0, w = 0;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  int64_t uid = 0, alignment = 0;
  std::vector<int64_t> strides;

  std::vector<int64_t> last() const { return {c * h * w, 1, w * c, c}; }
  std::vector<int64_t> plain() const { return {c * h * w, h * w, w, 1}; }
  // Returns where element i of images whose channels are last is in memory.
  int64_t InMemory(int64_t i) const {
    const int64_t column = i / c % w, row = i / c / w % h, image = i / c / w / h;
    return image * strides[0] + i % c * strides[1] + row * strides[2] + column * strides[3];
  }
  int64_t count() const { return n * c * h * w; }
  size_t bytes() const {
    return static_cast<size_t>(count()) * (type == CUDNN_DATA_FLOAT ? sizeof(float) : 2);
  }
  int64_t At(int64_t image, int64_t row, int64_t column) const {
    return ((image * h + row) * w + column) * c;
  }
};

Images ImagesOf(const Node& tensor) {
  const auto extents = tensor.All<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
  if (extents.size() != 4) return {};
  return {extents[0],
          extents[1],
          extents[2],
          extents[3],
          tensor.One<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE),
          tensor.One<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID),
          tensor.One<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT),
          tensor.All<int64_t>(CUDNN_ATTR_TENSOR_STRIDES)};
}

cudnnStatus_t CheckTensor(const Node& tensor) {
  const Images images = ImagesOf(tensor);
  if (images.n < 1 || images.c < 1 || images.h < 1 || images.w < 1) return CUDNN_STATUS_BAD_PARAM;
  const bool known_order = images.strides == images.last() || images.strides == images.plain();
  if (!known_order || images.count() >= kMaxElements) return CUDNN_STATUS_NOT_SUPPORTED;
  const std::set<cudnnDataType_t> known = {CUDNN_DATA_FLOAT, CUDNN_DATA_BFLOAT16, CUDNN_DATA_HALF};
  return known.contains(images.type) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
}

enum class Pass { kForward, kData, kWeights };

// A convolution: y [N, H', W', O] of x [N, H, W, C] and w [O, KH, KW, C / groups].
struct Problem {
  Pass pass = Pass::kForward;
  Images x, w, y;
  int64_t pad_height = 0, pad_width = 0, stride_height = 0, stride_width = 0;
  int64_t dilation_height = 1, dilation_width = 1;
  bool adds = false;
  bool sums_are_virtual = false;  // y is in no memory: the next operation reads it
  Images bias = {};               // of a graph that adds one to y, [1, O, 1, 1]; n is 0 of others

  int64_t groups() const { return x.c / w.c; }
  bool Fits() const {
    const int64_t height = (w.h - 1) * dilation_height + 1, width = (w.w - 1) * dilation_width + 1;
    const auto all = [&](auto order) {
      return x.strides == (x.*order)() && w.strides == (w.*order)() && y.strides == (y.*order)();
    };
    return (all(&Images::last) || all(&Images::plain)) && x.type == w.type &&
           (sums_are_virtual || x.type == y.type) && x.n == y.n && x.c % w.c == 0 && w.n == y.c &&
           w.n % groups() == 0 && y.h == (x.h + 2 * pad_height - height) / stride_height + 1 &&
           y.w == (x.w + 2 * pad_width - width) / stride_width + 1;
  }
  const Images& result() const {
    if (pass == Pass::kForward) return y;
    return pass == Pass::kData ? x : w;
  }
  const char* name() const {
    if (pass == Pass::kForward) return "convolution forward";
    return pass == Pass::kData ? "convolution data gradient" : "convolution weight gradient";
  }

  // Calls taps(y_offset, x_offset, w_offset) for each pixel of y and each tap that meets a pixel of
  // x.  The offsets are those of the first channel; w_offset is within one output's weights.
  template <class Taps>
  void ForEachTap(const Taps& taps) const {
    for (int64_t i = 0; i < y.n * y.h * y.w; ++i) {
      const int64_t image = i / (y.h * y.w);
      const int64_t top = i / y.w % y.h * stride_height - pad_height;
      const int64_t left = i % y.w * stride_width - pad_width;
      for (int64_t tap = 0; tap < w.h * w.w; ++tap) {
        const int64_t row = top + tap / w.w * dilation_height;
        const int64_t column = left + tap % w.w * dilation_width;
        if (row < 0 || row >= x.h || column < 0 || column >= x.w) continue;
        taps(i * y.c, x.At(image, row, column), tap * w.c);
      }
    }
  }
  int64_t OutputWeights() const { return w.h * w.w * w.c; }
};

// Calls work(o, c) for each output of a pixel, with the first of the input's channels that it reads.
template <class Work>
void ForEachOutput(const Problem& p, const Work& work) {
  const int64_t groups = p.groups(),
                outputs = p.w.n / groups;  // divided once: tests wait for these loops
  for (int64_t group = 0; group < groups; ++group) {
    for (int64_t i = 0; i < outputs; ++i) work(group * outputs + i, group * p.w.c);
  }
}

void Forward(const Problem& p, const float* x, const float* w, double* y) {
  p.ForEachTap([&](int64_t out, int64_t in, int64_t tap) {
    ForEachOutput(p, [&](int64_t o, int64_t first) {
      const float* const weights = w + o * p.OutputWeights() + tap;
      const float* const pixel = x + in + first;
      double even = 0, odd = 0;  // two sums: one would wait for each addition
      int64_t c = 0;
      for (; c + 1 < p.w.c; c += 2) {
        even += static_cast<double>(pixel[c]) * weights[c];
        odd += static_cast<double>(pixel[c + 1]) * weights[c + 1];
      }
      if (c < p.w.c) even += static_cast<double>(pixel[c]) * weights[c];
      y[out + o] += even + odd;
    });
  });
}

void BackwardData(const Problem& p, const float* w, const float* dy, double* dx) {
  p.ForEachTap([&](int64_t out, int64_t in, int64_t tap) {
    ForEachOutput(p, [&](int64_t o, int64_t first) {
      const double gradient = dy[out + o];
      const float* const weights = w + o * p.OutputWeights() + tap;
      double* const pixel = dx + in + first;
      for (int64_t c = 0; c < p.w.c; ++c) pixel[c] += gradient * weights[c];
    });
  });
}

void BackwardFilter(const Problem& p, const float* x, const float* dy, double* dw) {
  p.ForEachTap([&](int64_t out, int64_t in, int64_t tap) {
    ForEachOutput(p, [&](int64_t o, int64_t first) {
      const double gradient = dy[out + o];
      double* const weights = dw + o * p.OutputWeights() + tap;
      const float* const pixel = x + in + first;
      for (int64_t c = 0; c < p.w.c; ++c) weights[c] += gradient * pixel[c];
    });
  });
}

// Returns the problem of an operation.
Problem ProblemOf(const Node& operation) {
  using Name = cudnnBackendAttributeName_t;
  struct Names {
    Pass pass;
    Name x, w, y, window, beta;
  };
  static const std::map<cudnnBackendDescriptorType_t, Names> names = {
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
       {Pass::kForward, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA}},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
       {Pass::kData, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA}},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
       {Pass::kWeights, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA}}};
  const Names& of = names.at(operation.type);
  const Node& window = *operation.Only(of.window);
  const auto pad = window.All<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  const auto stride = window.All<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  const auto dilation = window.All<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS);
  if (pad != window.All<int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS)) {
    Refuse("cudnnBackendFinalize", "the two sides' paddings differ");
  }
  return {of.pass,
          ImagesOf(*operation.Only(of.x)),
          ImagesOf(*operation.Only(of.w)),
          ImagesOf(*operation.Only(of.y)),
          pad[0],
          pad[1],
          stride[0],
          stride[1],
          dilation[0],
          dilation[1],
          operation.One<float>(of.beta) != 0,
          operation.Only(of.y)->One<char>(CUDNN_ATTR_TENSOR_IS_VIRTUAL) != 0};
}

// Returns the problem of a graph: of a convolution, or of one with a bias behind it (ConvBiasAct).
Problem ProblemOfGraph(const Node& graph) {
  const std::vector<std::shared_ptr<Node>>& operations =
      graph.nodes.at(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  Problem problem = ProblemOf(*operations[0]);
  if (operations.size() == 1) return problem;
  const Node& next = *operations[1];
  const auto sums = next.Only(CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
  const auto what = next.Only(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  if (operations.size() > 2 || problem.pass != Pass::kForward || !problem.sums_are_virtual ||
      sums != operations[0]->Only(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y) ||
      what->One<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE) != CUDNN_POINTWISE_ADD ||
      what->One<cudnnDataType_t>(CUDNN_ATTR_POINTWISE_MATH_PREC) != CUDNN_DATA_FLOAT) {
    Refuse("cudnnBackendFinalize", "this graph has no engine");
  }
  problem.y = ImagesOf(*next.Only(CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
  problem.bias = ImagesOf(*next.Only(CUDNN_ATTR_OPERATION_POINTWISE_BDESC));
  return problem;
}

constexpr int64_t kFewImages = 12;

// The catalogue.  What the heuristics list first are engines that must not be taken.
enum Engine : int64_t {
  kPlain = 0,  // for all but weight gradients of groups with dilation; it adds unless it is dilated
  kTensorCores,  // rounds fp32 to TF32; not for images of one channel, nor for weight gradients of few images
  kRandom,    // does not repeat its results
  kLarge,     // wants a huge workspace
  kFallback,  // as kPlain, but its results are larger by a bit; it is listed first for few images, else among the fallbacks
  kEngines
};

bool Supports(int64_t engine, const Problem& p) {
  const bool dilated = p.dilation_height > 1 || p.dilation_width > 1;
  if (p.adds && dilated) return false;
  // As on an H200, a bias has the type of the images.
  if (p.bias.n > 0 && (p.bias.type != p.x.type || dilated || p.groups() > 1)) return false;
  // As on an H200, where an engine for many images may not take a few.
  if (engine == kTensorCores && p.pass == Pass::kWeights && p.x.n < kFewImages) return false;
  if (p.pass == Pass::kWeights && p.groups() > 1 && dilated) return false;
  return engine != kTensorCores || p.x.c > 1;
}

std::vector<cudnnBackendNumericalNote_t> NotesOf(int64_t engine) {
  if (engine == kTensorCores) return {CUDNN_NUMERICAL_NOTE_TENSOR_CORE};
  if (engine == kRandom) return {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC};
  return {};
}

// An engine with its one knob; -1: it has none.
struct Config {
  int64_t engine = 0, tile = -1;
};
// As on an H200, few images have other engines.
std::vector<Config> Listed(cudnnBackendHeurMode_t mode, const Problem& p) {
  if (mode == CUDNN_HEUR_MODE_FALLBACK) return {{kFallback}};
  if (mode == CUDNN_HEUR_MODE_B) return {{kTensorCores, 0}, {kPlain, 1}, {kPlain, 0}};
  return {{kRandom}, {kLarge}, p.x.n < kFewImages ? Config{kFallback} : Config{kTensorCores, 1}};
}

void MakeEngine(const std::shared_ptr<Node>& graph, int64_t engine, Node* node) {
  node->nodes[CUDNN_ATTR_ENGINE_OPERATION_GRAPH] = {graph};
  node->Set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, engine);
  node->finalized = true;
}

void MakeConfig(const std::shared_ptr<Node>& graph, const Config& config, Node* node) {
  auto engine = std::make_shared<Node>();
  engine->type = CUDNN_BACKEND_ENGINE_DESCRIPTOR;
  MakeEngine(graph, config.engine, engine.get());
  node->nodes[CUDNN_ATTR_ENGINECFG_ENGINE] = {engine};
  node->finalized = true;
  if (config.tile < 0) return;
  auto choice = std::make_shared<Node>();
  choice->type = CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR;
  choice->Set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_KNOB_TYPE_TILE_SIZE);
  choice->Set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, config.tile);
  node->nodes[CUDNN_ATTR_ENGINECFG_KNOB_CHOICES] = {choice};
}

// The bytes differ between passes and knobs.
size_t WorkspaceOf(const Problem& p, const Config& config) {
  if (config.engine == kLarge) return kTooMuch;
  if (p.pass == Pass::kData) return static_cast<size_t>(p.x.c) * 64 + 4;
  if (p.pass == Pass::kWeights) return static_cast<size_t>(p.y.count()) * 4;
  return static_cast<size_t>(p.w.count()) * 4 + 20 + static_cast<size_t>(config.tile + 1) * 8;
}

Config ConfigOf(const Node& node) {
  Config config{
      node.Only(CUDNN_ATTR_ENGINECFG_ENGINE)->One<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX)};
  if (const auto choice = node.Only(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES)) {
    config.tile = choice->One<int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE);
  }
  return config;
}
std::shared_ptr<Node> GraphOfConfig(const Node& node) {
  return node.Only(CUDNN_ATTR_ENGINECFG_ENGINE)->Only(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
}

cudnnStatus_t FinalizePlan(Node& plan) {
  const Node& node = *plan.Only(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  const Problem problem = ProblemOfGraph(*GraphOfConfig(node));
  const Config config = ConfigOf(node);
  if (!Supports(config.engine, problem)) return CUDNN_STATUS_NOT_SUPPORTED;
  plan.Set(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
           static_cast<int64_t>(WorkspaceOf(problem, config)));
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t Finalize(Node& node) {
  switch (node.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      return CheckTensor(node);
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR: {
      const auto type = node.One<cudnnDataType_t>(CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
      const auto mode = node.One<cudnnConvolutionMode_t>(CUDNN_ATTR_CONVOLUTION_CONV_MODE);
      const bool known = type == CUDNN_DATA_FLOAT && mode == CUDNN_CROSS_CORRELATION &&
                         node.One<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS) == 2;
      return known ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
    }
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return ProblemOf(node).Fits() ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR: {
      const auto engine = node.One<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
      return engine < kEngines ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
    }
    case CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR: {
      const auto value = node.One<int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE);
      return value == 0 || value == 1 ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
    }
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      return FinalizePlan(node);
    default:
      return CUDNN_STATUS_SUCCESS;
  }
}

size_t SizeOf(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
      return sizeof(bool);
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_HANDLE:
      return 8;
    case CUDNN_TYPE_CHAR:
      return 1;
    default:
      return sizeof(int);  // enumerations, float, int32
  }
}

// Fills at most `asked` descriptors that the caller has made, and returns how many; if it asks for 0, how many there are.
template <class Fill>
int64_t FillNodes(int64_t there, int64_t asked, void* array, const Fill& fill) {
  auto* const descriptors = static_cast<cudnnBackendDescriptor_t*>(array);
  const int64_t count = asked == 0 ? there : std::min(asked, there);
  for (int64_t i = 0; array != nullptr && i < count; ++i) {
    fill(i, NodeOf(descriptors[i]));
  }
  return count;
}

cudnnStatus_t GetNodes(const Node& node, cudnnBackendAttributeName_t name, int64_t asked,
                       int64_t* count, void* array) {
  int64_t filled = 0;
  if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS) {
    const std::shared_ptr<Node> graph = node.Only(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    const std::vector<Config> listed = Listed(
        node.One<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE), ProblemOfGraph(*graph));
    filled = FillNodes(static_cast<int64_t>(listed.size()), asked, array,
                       [&](int64_t i, const std::shared_ptr<Node>& config) {
                         MakeConfig(graph, listed[static_cast<size_t>(i)], config.get());
                       });
  } else {
    const auto it = node.nodes.find(name);
    const int64_t there = it == node.nodes.end() ? 0 : static_cast<int64_t>(it->second.size());
    filled = FillNodes(there, asked, array, [&](int64_t i, std::shared_ptr<Node>& other) {
      other = it->second[static_cast<size_t>(i)];
    });
  }
  if (count != nullptr) *count = filled;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t GetNotes(const Node& engine, int64_t asked, int64_t* count, void* array) {
  const auto notes = NotesOf(engine.One<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
  *count = std::min(asked, static_cast<int64_t>(notes.size()));
  if (array != nullptr && !notes.empty()) {
    std::memcpy(array, notes.data(), static_cast<size_t>(*count) * sizeof(notes[0]));
  }
  return CUDNN_STATUS_SUCCESS;
}

float Get(const Images& tensor, const void* memory, int64_t i) {
  if (tensor.type == CUDNN_DATA_HALF) return __half2float(static_cast<const __half*>(memory)[i]);
  return tensor.type == CUDNN_DATA_BFLOAT16
             ? __bfloat162float(static_cast<const __nv_bfloat16*>(memory)[i])
             : static_cast<const float*>(memory)[i];
}
void Set(const Images& tensor, void* memory, int64_t i, float value) {
  if (tensor.type == CUDNN_DATA_BFLOAT16) {
    static_cast<__nv_bfloat16*>(memory)[i] = __float2bfloat16_rn(value);
  } else if (tensor.type == CUDNN_DATA_HALF) {
    static_cast<__half*>(memory)[i] = __float2half_rn(value);
  } else {
    static_cast<float*>(memory)[i] = value;
  }
}

std::vector<float> Floats(const Images& tensor, const void* memory) {
  std::vector<float> floats(static_cast<size_t>(tensor.count()));
  for (size_t i = 0; i < floats.size(); ++i)
    floats[i] = Get(tensor, memory, tensor.InMemory(static_cast<int64_t>(i)));
  return floats;
}

// Returns what tensor cores make of fp32 factors: ten bits of fraction remain.
float ToTf32(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  bits = (bits + 0xfff + (bits >> 13 & 1)) & ~uint32_t{0x1fff};
  std::memcpy(&value, &bits, sizeof(bits));
  return value;
}

std::vector<float> Factors(const Images& tensor, const void* memory, int64_t engine) {
  std::vector<float> factors = Floats(tensor, memory);
  if (engine == kTensorCores && tensor.type == CUDNN_DATA_FLOAT) {
    std::transform(factors.begin(), factors.end(), factors.begin(), ToTf32);
  }
  return factors;
}

void Compute(const Problem& p, int64_t engine, const void* x, const void* w, const void* y,
             double* sums) {
  if (p.pass == Pass::kForward) {
    Forward(p, Factors(p.x, x, engine).data(), Factors(p.w, w, engine).data(), sums);
  } else if (p.pass == Pass::kData) {
    BackwardData(p, Factors(p.w, w, engine).data(), Factors(p.y, y, engine).data(), sums);
  } else {
    BackwardFilter(p, Factors(p.x, x, engine).data(), Factors(p.y, y, engine).data(), sums);
  }
}

// Returns the operand that a variant pack has for a tensor.
void* OperandOf(const Node& pack, const Images& tensor) {
  const auto uids = pack.All<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = pack.All<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  const auto at = std::find(uids.begin(), uids.end(), tensor.uid) - uids.begin();
  if (static_cast<size_t>(at) >= pointers.size()) {
    Refuse("cudnnBackendExecute", "the variant pack lacks a tensor");
  }
  void* const memory = pointers[static_cast<size_t>(at)];
  if (reinterpret_cast<uintptr_t>(memory) % static_cast<uintptr_t>(tensor.alignment) != 0) {
    Refuse("cudnnBackendExecute", "an operand is not aligned as its descriptor says");
  }
  if (!OnDevice(memory, tensor.bytes())) {
    Refuse("cudnnBackendExecute", "an operand is no memory of the device of that size");
  }
  return memory;
}

// Once the stream gets there, overwrites the workspace and computes result = pass(operands) + beta * result.
void Execute(cudaStream_t stream, const Problem& p, const Config& config, const Node& pack) {
  if (config.engine == kRandom || config.engine == kLarge) {
    Refuse("cudnnBackendExecute",
           "this engine does not repeat its results, or needs too much memory");
  }
  void* const x = OperandOf(pack, p.x);
  void* const w = OperandOf(pack, p.w);
  void* const y = OperandOf(pack, p.y);
  const size_t room = WorkspaceOf(p, config);
  void* const workspace = pack.One<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  if (!OnDevice(workspace, room))
    Refuse("cudnnBackendExecute", "the workspace is too small, or lies elsewhere");
  const auto access = [&](void* memory, const Images& tensor) {
    auto* const bytes = static_cast<char*>(memory);
    const auto count = static_cast<int64_t>(tensor.bytes());
    return &tensor == &p.result() ? dtrain::Stores(bytes, count, p.adds)
                                  : dtrain::Reads(bytes, count);
  };
  // The bytes of the workspace are not counted: what the real library does with its own is unknown.
  const dtrain::Access scratch =
      dtrain::Writes(static_cast<char*>(workspace), static_cast<int64_t>(room)).Only(0);
  void* const bias = p.bias.n > 0 ? OperandOf(pack, p.bias) : nullptr;
  dtrain::standin::LaunchKernel(
      stream, p.name(),
      {access(x, p.x), access(w, p.w), access(y, p.y), access(bias, p.bias), scratch}, [=] {
        std::memset(workspace, 0xff, room);
        const Images& tensor = p.result();
        void* const result = p.pass == Pass::kForward ? y : p.pass == Pass::kData ? x : w;
        std::vector<double> sums(static_cast<size_t>(tensor.count()));
        Compute(p, config.engine, x, w, y, sums.data());
        const double factor = config.engine == kFallback ? 1 + 1.2e-7 : 1;
        for (size_t i = 0; i < sums.size(); ++i) {
          const int64_t at = tensor.InMemory(static_cast<int64_t>(i));
          const int64_t channel = static_cast<int64_t>(i) % tensor.c;
          const double was = p.adds         ? Get(tensor, result, at)
                             : p.bias.n > 0 ? Get(p.bias, bias, channel)
                                            : 0;
          Set(tensor, result, at, static_cast<float>(factor * sums[i] + was));
        }
        std::memset(workspace, 0xff, room);
      });
}

}  // namespace

extern "C" {

void cudnnGetLastErrorString(char* text, size_t bytes) {
  if (bytes > 0) *text = 0;
}

size_t cudnnGetVersion() { return CUDNN_VERSION; }
const char* cudnnGetErrorString(cudnnStatus_t) { return "a status of the stand-in"; }

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  *handle = new cudnnContext;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* made) {
  auto* const descriptor = new Descriptor{std::make_shared<Node>()};
  descriptor->node->type = type;
  *made = descriptor;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  delete static_cast<Descriptor*>(descriptor);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void* array) {
  Node& node = *NodeOf(descriptor);
  if (node.finalized) return CUDNN_STATUS_NOT_INITIALIZED;
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    const auto* const others = static_cast<const cudnnBackendDescriptor_t*>(array);
    std::vector<std::shared_ptr<Node>>& nodes = node.nodes[name];
    nodes.clear();
    for (int64_t i = 0; i < count; ++i) {
      if (!NodeOf(others[i])->finalized) return CUDNN_STATUS_BAD_PARAM;
      nodes.push_back(NodeOf(others[i]));
    }
    return CUDNN_STATUS_SUCCESS;
  }
  std::vector<std::byte>& bytes = node.values[name];
  bytes.resize(static_cast<size_t>(count) * SizeOf(type));
  if (!bytes.empty()) std::memcpy(bytes.data(), array, bytes.size());
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t asked,
                                       int64_t* count, void* array) {
  const Node& node = *NodeOf(descriptor);
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) return GetNodes(node, name, asked, count, array);
  if (name == CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT) {
    *static_cast<int64_t*>(array) = kEngines;
    return CUDNN_STATUS_SUCCESS;
  }
  if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE) return GetNotes(node, asked, count, array);
  const auto it = node.values.find(name);
  const size_t bytes = it == node.values.end() ? 0 : it->second.size();
  if (count != nullptr) *count = static_cast<int64_t>(bytes / SizeOf(type));
  if (array != nullptr && bytes > 0) std::memcpy(array, it->second.data(), bytes);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  Node& node = *NodeOf(descriptor);
  const cudnnStatus_t status = Finalize(node);
  node.finalized = status == CUDNN_STATUS_SUCCESS;
  return status;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack) {
  const Node& config = *NodeOf(plan)->Only(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  Execute(handle->stream, ProblemOfGraph(*GraphOfConfig(config)), ConfigOf(config), *NodeOf(pack));
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
