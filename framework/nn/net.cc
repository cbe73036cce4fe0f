#include "framework/nn/net.h"

#include <algorithm>

#include "framework/core/check.h"
#include "framework/nn/program.h"

namespace dtrain {
namespace {

double SumLosses(const Program& program) {
  double sum = 0;
  for (const int slot : program.losses) {
    const float* losses = program.slots[slot].tensor.f32();
    for (int64_t n = 0; n < program.samples; ++n) sum += losses[n];
  }
  return sum;
}

int64_t CountMetric(const Program& program, int slot) {
  const float* counts = program.slots[slot].tensor.f32();
  int64_t sum = 0;
  for (int64_t n = 0; n < program.samples; ++n) sum += static_cast<int64_t>(counts[n]);
  return sum;
}

// Gives the kernels this step's parameters and batch.
void BindParams(std::vector<Tensor>& tensors, const ArenaLayout& layout, int first, float* arena) {
  for (size_t p = 0; p < tensors.size(); ++p) {
    tensors[p].data = arena == nullptr ? nullptr : arena + layout.entries[first + p].range.begin;
  }
}

void BindInputs(const Program& program, Op& op, const NetInput& input) {
  for (size_t k = 0; k < op.inputs.size(); ++k) {
    const int external = program.slots[op.inputs[k]].external;
    if (external >= 0) op.input_tensors[k].data = input.fields[external].data;
  }
}

std::vector<Tensor> TensorsOf(const ArenaLayout& layout, int first, size_t count) {
  std::vector<Tensor> tensors;
  for (size_t p = 0; p < count; ++p) {
    tensors.push_back({nullptr, Shape(layout.entries[first + p].shape), DType::kF32, Format::kPlain});
  }
  return tensors;
}

void AddInto(const Tensor& sum, const Tensor& addend) {
  const int64_t count = StoredCount(sum.shape, sum.format);
  for (int64_t i = 0; i < count; ++i) sum.f32()[i] += addend.f32()[i];
}

}  // namespace

Net::Net(const Graph& graph, const Device& device, std::map<std::string, std::string> kernels)
    : graph_(graph), device_(device), kernels_(std::move(kernels)) {}

Net::~Net() = default;

Program& Net::ProgramFor(Mode mode, int64_t samples) {
  Prepare(mode, samples);
  return *programs_.at({mode, samples});
}

void Net::Prepare(Mode mode, int64_t samples) {
  if (samples == 0 || programs_.contains({mode, samples})) return;
  auto program = std::make_unique<Program>(Compile(graph_, mode, samples, device_, kernels_));
  for (Op& op : program->ops) {
    if (op.layer == nullptr) continue;
    op.params = TensorsOf(graph_.weights(), op.layer->first_param, op.layer->params.size());
    op.param_gradients = op.params;
    op.state = TensorsOf(graph_.state(), op.layer->first_state, op.layer->states.size());
  }
  if (program->scratch_bytes > scratch_.bytes()) scratch_ = Buffer(program->scratch_bytes);
  const bool grows = program->arena_bytes > arena_.bytes();
  if (grows) arena_ = Buffer(program->arena_bytes);
  program->Bind(static_cast<std::byte*>(arena_.data()));
  programs_[{mode, samples}] = std::move(program);
  if (!grows) return;
  for (auto& [key, other] : programs_) other->Bind(static_cast<std::byte*>(arena_.data()));
}

void Net::Call(Op& op, bool backward, KernelArgs& args) {
  args.inputs = op.input_tensors;
  args.outputs = op.output_tensors;
  args.output_gradients = op.output_gradients;
  args.input_gradients = op.input_gradients;
  args.params = op.params;
  args.param_gradients = op.param_gradients;
  args.state = op.state;
  args.saved = op.saved;
  const Nanos start = observer_ ? WallNow() : 0;
  if (backward) {
    op.kernel->Backward(args);
  } else {
    op.kernel->Forward(args);
  }
  if (observer_) observer_({&op.name, &op.implementation, op.layer, backward, WallNow() - start, &args});
}

void Net::RunForward(Program& program, const NetInput& input, const float* weights,
                     const float* state, KernelArgs& args) {
  DT_CHECK(input.fields.size() == graph_.inputs().size());
  args.scratch = scratch_.data();
  args.seed = input.seed;
  args.step = input.step;
  args.first_position = input.first_position;
  for (Op& op : program.ops) {
    BindInputs(program, op, input);
    if (op.layer != nullptr) {
      BindParams(op.params, graph_.weights(), op.layer->first_param, const_cast<float*>(weights));
      BindParams(op.state, graph_.state(), op.layer->first_state, const_cast<float*>(state));
    }
    Call(op, false, args);
  }
}

void Net::RunBackward(Program& program, float* gradients, KernelArgs& args, GradientSink* sink) {
  for (auto op = program.ops.rbegin(); op != program.ops.rend(); ++op) {
    if (!op->has_backward) continue;
    if (op->layer != nullptr) {
      BindParams(op->param_gradients, graph_.weights(), op->layer->first_param, gradients);
    }
    Call(*op, true, args);
    for (size_t k = 0; k < op->sums.size(); ++k) {
      if (op->sums[k].data != nullptr) AddInto(op->sums[k], op->input_gradients[k]);
    }
    if (sink != nullptr && !op->params.empty()) sink->Ready(op->layer->param_range);
  }
}

void Net::WriteZeroGradients(float* gradients, GradientSink* sink, bool accumulate) const {
  if (!accumulate) std::fill_n(gradients, graph_.weights().size(), 0.0f);
  for (auto layer = graph_.layers().rbegin(); layer != graph_.layers().rend(); ++layer) {
    if (sink != nullptr && !layer->params.empty()) sink->Ready(layer->param_range);
  }
}

StepResult Net::Step(const float* weights, float* gradients, float* state, const NetInput& input,
                     GradientSink* sink, bool accumulate) {
  if (input.samples == 0) {
    WriteZeroGradients(gradients, sink, accumulate);
    return {};
  }
  Program& program = ProgramFor(Mode::kTrain, input.samples);
  KernelArgs args;
  args.accumulate = accumulate;
  args.loss_scale = 1.0f / static_cast<float>(input.global_samples);
  RunForward(program, input, weights, state, args);
  StepResult result;
  result.loss_sum = SumLosses(program);
  RunBackward(program, gradients, args, sink);
  return result;
}

EvaluateResult Net::Evaluate(const float* weights, const float* state, const NetInput& input) {
  Program& program = ProgramFor(Mode::kEvaluate, input.samples);
  KernelArgs args;
  RunForward(program, input, weights, state, args);
  EvaluateResult result;
  result.samples = input.samples;
  result.loss_sum = SumLosses(program);
  for (const int slot : program.metrics) result.metric_counts.push_back(CountMetric(program, slot));
  return result;
}

std::vector<std::string> Net::metric_names() const {
  std::vector<std::string> names;
  for (const GraphLayer& layer : graph_.layers()) {
    if (layer.layer->role() == LayerRole::kMetric) names.push_back(layer.name);
  }
  return names;
}

std::map<std::string, std::string> Net::ChosenKernels(int64_t samples) const {
  std::map<std::string, std::string> chosen;
  const auto it = programs_.find({Mode::kTrain, samples});
  if (it == programs_.end()) return chosen;
  for (const Op& op : it->second->ops) {
    if (op.layer != nullptr) chosen[op.name] = op.implementation;
  }
  return chosen;
}

}  // namespace dtrain
