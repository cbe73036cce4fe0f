#include "layers/convolution/convolution_pass_cuda.h"

#include <cudnn_frontend.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "framework/core/error.h"
#include "framework/core/time.h"
#include "framework/device/buffer.h"

namespace dtrain {

namespace fe = cudnn_frontend;

struct ConvolutionPass::Plan {
  ConvolutionProblem problem;
  Kind kind;
  fe::ExecutionPlan plan;
};

namespace {

using Kind = ConvolutionPass::Kind;

cudnnDataType_t TypeOf(DType type) {
  if (type == DType::kBF16) return CUDNN_DATA_BFLOAT16;
  return type == DType::kF16 ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT;
}

size_t BytesOf(const Shape& shape, DType type) {
  return static_cast<size_t>(shape.count()) * static_cast<size_t>(SizeOf(type));
}

// An image of a part of a batch begins behind those of the others (Batch::RowsOf), and all memory at 16 bytes.
int64_t AlignmentOf(const Shape& images, DType type) {
  const size_t image = BytesOf(images, type) / static_cast<size_t>(images[0]);
  return static_cast<int64_t>(std::min<size_t>(16, image & -image));
}

// Describes a tensor in memory or, with a `type` of its own, a virtual one: what one operation hands to the next.
fe::Tensor TensorOf(char uid, const Shape& shape, const ConvolutionProblem& problem,
                    int64_t alignment = 16, std::optional<cudnnDataType_t> type = {}) {
  const int64_t channels = shape[1], height = shape[2], width = shape[3];
  const int64_t extents[] = {shape[0], channels, height, width};
  const int64_t last[] = {channels * height * width, 1, width * channels, channels};
  const int64_t plain[] = {channels * height * width, height * width, width, 1};
  return fe::TensorBuilder()
      .setDim(4, extents)
      .setStride(4, problem.format == Format::kPlain ? plain : last)
      .setId(uid)
      .setAlignment(alignment)
      .setDataType(type.value_or(TypeOf(problem.type)))
      .setVirtual(type.has_value())
      .build();
}

fe::Tensor BiasOf(const ConvolutionProblem& problem) {
  const int64_t channels = problem.y[1];
  const int64_t extents[] = {1, channels, 1, 1}, strides[] = {channels, 1, channels, channels};
  return fe::TensorBuilder()
      .setDim(4, extents)
      .setStride(4, strides)
      .setId('b')
      .setAlignment(static_cast<int64_t>(SizeOf(problem.type)))
      .setDataType(TypeOf(problem.type))
      .build();
}

// y = sums + bias.
fe::Operation AddBias(const ConvolutionProblem& problem, const fe::Tensor& sums,
                      const fe::Tensor& y) {
  return fe::OperationBuilder(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
      .setxDesc(sums)
      .setbDesc(BiasOf(problem))
      .setyDesc(y)
      .setpwDesc(fe::PointWiseDescBuilder()
                     .setMode(CUDNN_POINTWISE_ADD)
                     .setComputeType(CUDNN_DATA_FLOAT)
                     .build())
      .build();
}

// The GPU: that of a handle, or one that this machine need not have, by its properties (EngineByRule).
struct Gpu {
  cudnnHandle_t handle = nullptr;
  std::shared_ptr<const fe::DeviceProperties> properties;
};

fe::OperationGraph GraphOf(const Gpu& gpu, const ConvolutionProblem& problem, Kind kind,
                           bool adds) {
  const fe::Tensor x = TensorOf('x', problem.x, problem, AlignmentOf(problem.x, problem.type));
  const fe::Tensor w =
      TensorOf('w', problem.w, problem, problem.weights_in_arena() ? sizeof(float) : 16);
  const fe::Tensor y = TensorOf('y', problem.y, problem);
  const bool behind = kind == Kind::kForward && problem.bias;
  const fe::Tensor sums = TensorOf('s', problem.y, problem, 16, CUDNN_DATA_FLOAT);
  const int64_t pad[] = {problem.pad.height, problem.pad.width};
  const int64_t stride[] = {problem.stride.height, problem.stride.width};
  const int64_t dilation[] = {problem.dilation.height, problem.dilation.width};
  const fe::ConvDesc window = fe::ConvDescBuilder()
                                  .setComputeType(CUDNN_DATA_FLOAT)
                                  .setMathMode(CUDNN_CROSS_CORRELATION)
                                  .setSpatialDimCount(2)
                                  .setSpatialStride(2, stride)
                                  .setPrePadding(2, pad)
                                  .setPostPadding(2, pad)
                                  .setDilation(2, dilation)
                                  .build();
  const auto operation = [&]() -> fe::Operation {
    switch (kind) {
      case Kind::kForward:
        return fe::OperationBuilder(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR)
            .setxDesc(x)
            .setwDesc(w)
            .setyDesc(behind ? sums : y)
            .setcDesc(window)
            .build();
      case Kind::kData:
        return fe::OperationBuilder(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR)
            .setdxDesc(x)
            .setwDesc(w)
            .setdyDesc(y)
            .setcDesc(window)
            .setBeta(adds ? 1.0F : 0.0F)
            .build();
      default:
        return fe::OperationBuilder(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR)
            .setxDesc(x)
            .setdwDesc(w)
            .setdyDesc(y)
            .setcDesc(window)
            .setBeta(adds ? 1.0F : 0.0F)
            .build();
    }
  }();
  std::optional<fe::Operation> add;
  if (behind) add.emplace(AddBias(problem, sums, y));
  const fe::Operation* operations[] = {&operation, add ? &*add : nullptr};
  fe::OperationGraphBuilder builder;
  if (gpu.handle != nullptr) builder.setHandle(gpu.handle);
  return builder.setOperationGraph(behind ? 2 : 1, operations).build();
}

// True if an engine does not repeat its results, or is less precise than was asked.  Engines that round fp32 to TF32
// have the note of tensor cores; those that round it to 16 bits also that of down-conversion.
bool Disqualified(const ConvolutionProblem& problem, cudnnBackendDescriptor_t config) {
  if (fe::hasNumericalNote<CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC>(config) ||
      fe::hasNumericalNote<CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION>(config)) {
    return true;
  }
  if (problem.type != DType::kF32) return false;
  return fe::hasNumericalNote<CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS>(config) ||
         (!problem.tf32 && fe::hasNumericalNote<CUDNN_NUMERICAL_NOTE_TENSOR_CORE>(config));
}

// Returns the plan of an engine; none if it does not compute this graph here, or needs too much memory.
std::optional<fe::ExecutionPlan> PlanOf(const fe::ManagedOpaqueDescriptor& config) {
  try {
    fe::ExecutionPlan plan = fe::ExecutionPlanBuilder().setEngineConfig(config).build();
    if (static_cast<size_t>(plan.getWorkspaceSize()) > ConvolutionPass::kMostWorkspace) return {};
    return plan;
  } catch (const fe::cudnnException&) {
    return {};
  }
}

struct NamedEngine {
  int64_t number = 0;
  std::vector<std::pair<cudnnBackendKnobType_t, int64_t>> knobs;  // with their values
};

// Parses ConvolutionPass::engine(); none for another text, such as a plan that somebody has edited.
std::optional<NamedEngine> ParseEngine(std::string_view text) {
  const auto take = [&](std::string_view word, int64_t& value) {
    if (!text.starts_with(word)) return false;
    text.remove_prefix(word.size());
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return error == std::errc();
  };
  NamedEngine engine;
  if (!take("eng", engine.number)) return {};
  while (!text.empty()) {
    int64_t knob = 0, value = 0;
    if (engine.knobs.size() == CUDNN_KNOB_TYPE_COUNTS || !take("_k", knob) || !take("=", value)) {
      return {};
    }
    engine.knobs.emplace_back(static_cast<cudnnBackendKnobType_t>(knob), value);
  }
  return engine;
}

// True if cuDNN takes the values of an attribute.
template <class T>
bool Set(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
         cudnnBackendAttributeType_t type, const std::vector<T>& values) {
  return cudnnBackendSetAttribute(descriptor, name, type, static_cast<int64_t>(values.size()),
                                  values.data()) == CUDNN_STATUS_SUCCESS;
}
bool Finalize(cudnnBackendDescriptor_t descriptor) {
  return cudnnBackendFinalize(descriptor) == CUDNN_STATUS_SUCCESS;
}

// Returns the plan of an engine by its name; none if it does not qualify here.  By hand: the frontend's own builders know
// only some knobs' names, and no properties of another GPU.
std::optional<fe::ExecutionPlan> PlanNamed(const Gpu& gpu, const fe::OperationGraph& graph,
                                           const ConvolutionProblem& problem,
                                           const std::string& name) {
  const std::optional<NamedEngine> named = ParseEngine(name);
  if (!named) return {};
  fe::detail::backend_descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  if (fe::detail::create_engine(engine, named->number, graph.get_raw_desc(), gpu.properties)
          .is_bad()) {
    return {};
  }
  std::vector<fe::detail::backend_descriptor> choices;
  for (const auto& [knob, value] : named->knobs) {
    choices.emplace_back(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    cudnnBackendDescriptor_t const choice = choices.back().get_ptr();
    if (!Set(choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, std::vector{knob}) ||
        !Set(choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, std::vector{value}) ||
        !Finalize(choice)) {
      return {};
    }
  }
  auto config = fe::make_shared_backend_pointer(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  if (fe::detail::create_engine_config(config, engine, choices).is_bad() ||
      Disqualified(problem, config->get_backend_descriptor())) {
    return {};
  }
  return PlanOf(config);
}

// True if an engine can add to a gradient in the arena, or need not.
bool AddsIfItMust(const Gpu& gpu, const ConvolutionProblem& problem, Kind kind,
                  const fe::ExecutionPlan& plan) {
  if (kind != Kind::kWeights || !problem.weights_in_arena()) return true;
  return PlanNamed(gpu, GraphOf(gpu, problem, kind, true), problem, plan.getTag()).has_value();
}

// Calls visit(plan) for every engine that qualifies, in the heuristics' order, until it returns false.  The modes list some
// engines again.
void VisitListed(const Gpu& gpu, fe::OperationGraph& graph, const ConvolutionProblem& problem,
                 Kind kind, const std::function<bool(fe::ExecutionPlan)>& visit) {
  for (const auto mode : {fe::HeurMode_t::A, fe::HeurMode_t::B, fe::HeurMode_t::FALLBACK}) {
    fe::EngineConfigList configs;  // stays empty where the heuristics know nothing
    fe::get_heuristics_list(
        std::vector<fe::HeurMode_t>{mode}, graph,
        [&](cudnnBackendDescriptor_t config) { return Disqualified(problem, config); }, configs,
        /*evaluate_all=*/false, /*sm_count=*/-1, gpu.properties);
    for (const fe::ManagedOpaqueDescriptor& config : configs) {
      std::optional<fe::ExecutionPlan> plan = PlanOf(config);
      if (!plan || !AddsIfItMust(gpu, problem, kind, *plan)) continue;
      if (!visit(std::move(*plan))) return;
    }
  }
}

std::optional<fe::ExecutionPlan> FirstListed(const Gpu& gpu, fe::OperationGraph& graph,
                                             const ConvolutionProblem& problem, Kind kind) {
  std::optional<fe::ExecutionPlan> first;
  VisitListed(gpu, graph, problem, kind, [&](fe::ExecutionPlan plan) {
    first = std::move(plan);
    return false;
  });
  return first;
}

// `bias`: null if the graph has none.
void Execute(CudaQueue& queue, const fe::ExecutionPlan& plan, void* x, void* w, void* y, void* bias,
             void* workspace) {
  void* pointers[] = {x, w, y, bias};
  const int64_t uids[] = {'x', 'w', 'y', 'b'};
  const int64_t tensors = bias == nullptr ? 3 : 4;
  const auto pack = fe::VariantPackBuilder()
                        .setWorkspacePointer(workspace)
                        .setDataPointers(tensors, pointers)
                        .setUids(tensors, uids)
                        .build();
  DT_CUDA(cudnnBackendExecute, queue.dnn(), plan.get_raw_desc(), pack.get_raw_desc());
}

// Returns the seconds of an engine's runs, on zeros; infinity if it fails here, which a run must not end for.
double TimeOf(CudaQueue& queue, const std::function<void()>& run) {
  constexpr int kRuns = 10;
  try {
    run();
    queue.Wait();
    const Nanos start = WallNow();
    for (int i = 0; i < kRuns; ++i) run();
    queue.Wait();
    return ToSeconds(WallNow() - start);
  } catch (const Error&) {
    return std::numeric_limits<double>::infinity();
  }
}

// Times every engine that the heuristics list, and returns the fastest's plan; none if there is none.
std::optional<fe::ExecutionPlan> Fastest(const Device& device, fe::OperationGraph& graph,
                                         const ConvolutionProblem& problem, Kind kind) {
  CudaQueue& queue = QueueOf(device);
  const Gpu gpu{queue.dnn(), nullptr};
  std::map<std::string, fe::ExecutionPlan> plans;  // by name
  size_t workspace = 1;
  VisitListed(gpu, graph, problem, kind, [&](fe::ExecutionPlan plan) {
    workspace = std::max(workspace, static_cast<size_t>(plan.getWorkspaceSize()));
    plans.emplace(plan.getTag(), std::move(plan));
    return true;
  });
  const Buffer x(device, BytesOf(problem.x, problem.type));
  const Buffer w(device, BytesOf(problem.w, problem.type));
  const Buffer y(device, BytesOf(problem.y, problem.type)), room(device, workspace);
  const Buffer bias(device, BytesOf({problem.y[1]}, problem.type));
  void* const added = kind == Kind::kForward && problem.bias ? bias.data() : nullptr;
  std::optional<fe::ExecutionPlan> fastest;
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [name, plan] : plans) {
    const double seconds = TimeOf(queue, [&, &plan = plan] {
      Execute(queue, plan, x.data(), w.data(), y.data(), added, room.data());
    });
    if (seconds >= least) continue;
    fastest = plan;
    least = seconds;
  }
  return fastest;
}

std::string Describe(const ConvolutionProblem& p, Kind kind) {
  const char* const names[] = {"forward", "data", "weights"};
  return fmt::format("{} of {} by {} to {}, pad {}, stride {}, dilation {}, type {}{}{}{}",
                     names[static_cast<int>(kind)], p.x.ToString(), p.w.ToString(), p.y.ToString(),
                     p.pad.ToString(), p.stride.ToString(), p.dilation.ToString(),
                     static_cast<int>(p.type), p.tf32 ? ", tf32" : "",
                     p.format == Format::kPlain ? ", plain" : "", p.bias ? ", bias" : "");
}

std::optional<fe::ExecutionPlan> Choose(const Device& device, const ConvolutionProblem& problem,
                                        Kind kind, const ConvolutionPass::Choice& choice) {
  const Gpu gpu{QueueOf(device).dnn(), nullptr};
  fe::OperationGraph graph = GraphOf(gpu, problem, kind, false);
  auto named = PlanNamed(gpu, graph, problem, choice.engine);
  if (named && AddsIfItMust(gpu, problem, kind, *named)) return named;
  if (!choice.measure) return FirstListed(gpu, graph, problem, kind);
  // Several layers have the same problem, and a net is compiled more than once.
  static std::mutex mutex;
  static std::map<std::string, std::string> measured;  // problem -> engine
  const std::lock_guard lock(mutex);
  std::string& known = measured[Describe(problem, kind)];
  if (auto plan = PlanNamed(gpu, graph, problem, known)) return plan;
  std::optional<fe::ExecutionPlan> fastest = Fastest(device, graph, problem, kind);
  if (fastest) known = fastest->getTag();
  return fastest;
}

}  // namespace

ConvolutionPass::ConvolutionPass(const Device& device, const ConvolutionProblem& problem, Kind kind,
                                 const Choice& choice)
    : queue_(&QueueOf(device)) {
  try {
    if (auto plan = Choose(device, problem, kind, choice)) {
      plan_ = std::make_unique<Plan>(Plan{problem, kind, std::move(*plan)});
    }
  } catch (const fe::cudnnException& error) {
    throw NoEngineError(fmt::format("{}: {}", Describe(problem, kind), error.what()));
  }
  if (plan_ == nullptr) throw NoEngineError("no engine qualifies for " + Describe(problem, kind));
}

ConvolutionPass::ConvolutionPass(CudaQueue& queue, std::unique_ptr<Plan> plan)
    : queue_(&queue), plan_(std::move(plan)) {}

ConvolutionPass::~ConvolutionPass() = default;
ConvolutionPass::ConvolutionPass(ConvolutionPass&&) noexcept = default;
ConvolutionPass& ConvolutionPass::operator=(ConvolutionPass&&) noexcept = default;

std::optional<ConvolutionPass> ConvolutionPass::Adding() const {
  try {
    const Gpu gpu{queue_->dnn(), nullptr};
    const fe::OperationGraph graph = GraphOf(gpu, plan_->problem, plan_->kind, true);
    auto plan = PlanNamed(gpu, graph, plan_->problem, engine());
    if (!plan) return {};
    return ConvolutionPass(
        *queue_, std::make_unique<Plan>(Plan{plan_->problem, plan_->kind, std::move(*plan)}));
  } catch (const fe::cudnnException&) {
    return {};
  }
}

const std::string& ConvolutionPass::engine() const { return plan_->plan.getTag(); }

size_t ConvolutionPass::workspace_bytes() const {
  return static_cast<size_t>(plan_->plan.getWorkspaceSize());
}

void ConvolutionPass::Run(void* x, void* w, void* y, void* workspace, void* bias) const {
  Execute(*queue_, plan_->plan, x, w, y, bias, workspace);
}

ListedEngine EngineByRule(const std::string& properties, const ConvolutionProblem& problem,
                          ConvolutionPass::Kind kind) {
  const auto described_gpu = std::make_shared<fe::DeviceProperties>();
  if (auto read = described_gpu->deserialize({properties.begin(), properties.end()});
      read.is_bad()) {
    throw NoEngineError("properties of a GPU: " + read.get_message());
  }
  const Gpu gpu{nullptr, described_gpu};
  fe::OperationGraph graph = GraphOf(gpu, problem, kind, false);
  const auto plan = FirstListed(gpu, graph, problem, kind);
  if (!plan) throw NoEngineError("no engine qualifies for " + Describe(problem, kind));
  const auto again = PlanNamed(gpu, graph, problem, plan->getTag());
  if (!again || again->getTag() != plan->getTag()) {
    throw NoEngineError(
        fmt::format("{}: {} is not found by its name", Describe(problem, kind), plan->getTag()));
  }
  ListedEngine engine = {plan->getTag(), static_cast<size_t>(plan->getWorkspaceSize())};
  if (kind != Kind::kForward) {
    const fe::OperationGraph adding = GraphOf(gpu, problem, kind, true);
    engine.adds = PlanNamed(gpu, adding, problem, engine.name).has_value();
  }
  return engine;
}

}  // namespace dtrain
