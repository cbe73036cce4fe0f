#include "framework/nn/net.h"

#include <algorithm>
#include <ranges>

#include <fmt/format.h>

#include "framework/core/check.h"
#include "framework/core/error.h"
#include "framework/core/memory.h"
#include "framework/core/text.h"
#include "framework/nn/kernel.h"
#include "framework/nn/program.h"
#include "framework/nn/step_decoder.h"

namespace dtrain {
namespace {

// Sets the addresses of this step's parameters or gradients, but of those that have a block of their own.
void BindParams(std::vector<Tensor>& tensors, std::span<const int> blocks,
                const ArenaLayout& layout, int first, float* arena) {
  for (size_t p = 0; p < tensors.size(); ++p) {
    if (p < blocks.size() && blocks[p] >= 0) continue;
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
    tensors.push_back(
        {nullptr, Shape(layout.entries[first + p].shape), DType::kF32, Format::kPlain});
  }
  return tensors;
}

Range PartOf(int64_t samples, int64_t parts, int64_t part) {
  return SplitEvenly({0, samples}, static_cast<int>(parts), static_cast<int>(part));
}

// Returns a view of rows [rows.begin, rows.end) of a batch field.
Tensor RowsOf(const Tensor& field, Range rows) {
  Tensor part = field;
  const int64_t row_bytes = field.shape.CountFrom(1) * static_cast<int64_t>(SizeOf(field.dtype));
  part.data = static_cast<std::byte*>(field.data) + rows.begin * row_bytes;
  part.shape = field.shape.WithBatch(rows.size());
  return part;
}

}  // namespace

Net::Net(const Graph& graph, const Device& device, std::map<std::string, std::string> kernels,
         bool measure)
    : graph_(graph), device_(device), kernels_({std::move(kernels), measure}), copies_(device) {
  if (device.queue != nullptr) own_steps_ = std::make_unique<StepGraph>(device, false);
  programs_.reserve(kMaxPrograms);
  announcements_.reserve(graph.layers().size());
  shapes_.reserve(graph.inputs().size());
}

Net::~Net() = default;

// Moves the program it finds to the end, as the one used last.
Program* Net::Find(Mode mode, std::span<const Shape> inputs) {
  const auto it = std::find_if(programs_.begin(), programs_.end(), [&](const auto& program) {
    return program->mode == mode &&
           std::equal(inputs.begin(), inputs.end(), program->inputs.begin(), program->inputs.end());
  });
  if (it == programs_.end()) return nullptr;
  std::rotate(it, it + 1, programs_.end());
  return programs_.back().get();
}

Program& Net::ProgramFor(Mode mode, const NetInput& input) {
  DT_CHECK(input.fields.size() == graph_.inputs().size());
  shapes_.clear();
  for (const Tensor& field : input.fields) shapes_.push_back(field.shape);
  DT_CHECK(shapes_[0][0] == input.samples) << shapes_[0].ToString() << " for " << input.samples;
  Prepare(mode, shapes_);
  return *programs_.back();
}

void Net::Prepare(Mode mode, int64_t samples) {
  std::vector<Shape> shapes;
  for (const FieldSpec& input : graph_.inputs()) {
    shapes.push_back(input.sample_shape.Prepend(samples));
  }
  Prepare(mode, shapes);
}

void Net::FollowKernelsOf(int64_t samples) {
  Prepare(Mode::kTrain, samples);
  kernels_ = {ChosenKernels(samples), false};
}

void Net::Prepare(Mode mode, std::span<const Shape> inputs) {
  if (inputs[0][0] == 0 || Find(mode, inputs) != nullptr) return;
  auto program = std::make_unique<Program>(Compile(graph_, mode, inputs, device_, kernels_));
  for (Op& op : program->ops) {
    if (op.layer == nullptr) continue;
    op.params = TensorsOf(graph_.weights(), op.layer->first_param, op.layer->params.size());
    op.param_gradients = op.params;
    op.state = TensorsOf(graph_.state(), op.layer->first_state, op.layer->states.size());
  }
  try {
    WithMemoryFor(fmt::format("the activations of {}", Counted(inputs[0][0], "sample")),
                  [&] { Keep(std::move(program)); });
  } catch (const UsageError& error) {
    if (device_.queue != nullptr) ThrowTooLarge(error, mode, inputs);
    throw;
  }
}

// Throws the error for a batch that does not fit in the device's memory; its hint states how many samples would fit.
void Net::ThrowTooLarge(const UsageError& error, Mode mode, std::span<const Shape> inputs) {
  arena_ = Buffer();
  scratch_ = Buffer();
  // These are the current batch, and those that are prefetched.
  constexpr size_t kBatches = 3;
  // Weights, gradients and the two vectors that a solver may have take this memory.
  const size_t others = 4 * sizeof(float) * static_cast<size_t>(graph_.weights().size());
  // Leaves an eighth for the data set, evaluations and libraries.
  const size_t free = device_.queue->FreeBytes() / 8 * 7;
  const auto fits = [&](int64_t samples) {
    std::vector<Shape> shapes;
    size_t batch = 0;
    for (const Shape& input : inputs) {
      shapes.push_back(input.WithBatch(samples));
      batch += sizeof(float) * static_cast<size_t>(shapes.back().count());
    }
    const Program program = Compile(graph_, mode, shapes, device_, {kernels_.names, false});
    return program.scratch_bytes + program.arena_bytes + kBatches * batch + others <= free;
  };
  const int64_t samples = inputs[0][0];
  int64_t most = 0;
  for (int64_t too_many = samples; too_many - most > 1;) {
    const int64_t middle = (most + too_many) / 2;
    (fits(middle) ? most : too_many) = middle;
  }
  const std::string less =
      mode != Mode::kTrain || most == 0
          ? "a smaller model, or device: cpu"
          : fmt::format("a smaller batch, or accumulate: {}", (samples + most - 1) / most);
  throw UsageError(
      error.what(),
      fmt::format("there is room for {} of the {} samples that are {} at a time: {}", most, samples,
                  mode != Mode::kTrain ? "evaluated" : "trained on", less));
}

// Frees the old memory first, since there may be no room for both.
void Net::Keep(std::unique_ptr<Program> program) {
  if (program->scratch_bytes > scratch_.bytes()) {
    scratch_ = Buffer();
    scratch_ = Buffer(device_, program->scratch_bytes);
  }
  const bool grows = program->arena_bytes > arena_.bytes();
  if (grows) {
    arena_ = Buffer();
    arena_ = Buffer(device_, program->arena_bytes);
  }
  program->Bind(static_cast<std::byte*>(arena_.data()));
  program->id = programs_so_far_++;
  if (programs_.size() == kMaxPrograms) programs_.erase(programs_.begin());
  programs_.push_back(std::move(program));
  if (!grows) return;
  for (auto& other : programs_) other->Bind(static_cast<std::byte*>(arena_.data()));
}

void Net::Give(const Op& op, KernelArgs& args) {
  args.inputs = op.input_tensors;
  args.outputs = op.output_tensors;
  args.output_gradients = op.output_gradients;
  args.input_gradients = op.input_gradients;
  args.params = op.params;
  args.param_gradients = op.param_gradients;
  args.state = op.state;
  args.saved = op.saved;
  args.adds_input_gradient = op.adds_input_gradient;
}

void Net::Call(Op& op, bool backward, KernelArgs& args) {
  Give(op, args);
  if (observer_) device_.Record().Wait();
  const Nanos start = observer_ ? WallNow() : 0;
  if (backward) {
    op.kernel->Backward(args);
  } else {
    if (!op.needs.forward_writes_gradients) args.input_gradients = {};
    op.kernel->Forward(args);
  }
  if (!observer_) return;
  device_.Record().Wait();
  observer_({&op.name, &op.implementation, op.layer, backward, WallNow() - start, &args});
}

// Sets the arguments of a call that differ from step to step.
void Net::Bind(const Program& program, Op& op, const DeviceInputs& device_inputs,
               KernelArgs& args) const {
  args.scratch = scratch_.data();
  args.worker_sums = device_inputs.input.worker_sums;
  BindInputs(program, op, device_inputs.input);
  if (op.layer == nullptr) return;
  BindParams(op.params, op.param_blocks, graph_.weights(), op.layer->first_param,
             const_cast<float*>(device_inputs.weights));
  BindParams(op.state, {}, graph_.state(), op.layer->first_state, device_inputs.state);
}

// Adds the parameters of a call that have another form to `formed`, and what they are in an arena to `plain`.
void Net::ListForms(const Op& op, const std::vector<Tensor>& of, float* arena) {
  for (size_t p = 0; p < op.param_blocks.size(); ++p) {
    if (op.param_blocks[p] < 0) continue;
    const ArenaEntry& entry =
        graph_.weights().entries[static_cast<size_t>(op.layer->first_param) + p];
    forms_.plain.push_back({arena + entry.range.begin, of[p].shape});
    forms_.formed.push_back(of[p]);
  }
}

void Net::MakeForms(Program& program, const float* weights) {
  if (program.params == nullptr) return;
  forms_.Clear();
  for (const Op& op : program.ops) ListForms(op, op.params, const_cast<float*>(weights));
  KernelArgs args;
  args.inputs = forms_.plain;
  args.outputs = forms_.formed;
  program.params->Forward(args);
}

// Adds the gradients of parameters that have another form to those in the arena.
void Net::AddForms(Kernel& params, bool accumulate) {
  if (forms_.plain.empty()) return;
  KernelArgs args;
  args.accumulate = accumulate;
  args.output_gradients = forms_.formed;
  args.input_gradients = forms_.plain;
  params.Backward(args);
}

void Net::RunForward(Program& program, const DeviceInputs& device_inputs, KernelArgs& args) {
  MakeForms(program, device_inputs.weights);
  for (Op& op : program.ops) {
    Bind(program, op, device_inputs, args);
    Call(op, false, args);
  }
}

void Net::RunBackward(Program& program, Arena gradients, KernelArgs& args, bool last,
                      GradientSink* sink) {
  float* const device_gradients = copies_.Gradients(gradients, graph_.weights().size());
  // Whether a layer's gradients must be complete before those of the next.
  const bool by_layer = last && (sink != nullptr || gradients.queue == nullptr);
  for (auto op = program.ops.rbegin(); op != program.ops.rend(); ++op) {
    if (op->has_backward) RunBackward(*op, device_gradients, args);
    if (op->params.empty()) continue;
    if (by_layer && op->has_backward && op->own_params != nullptr) {
      forms_.Clear();
      ListForms(*op, op->param_gradients, device_gradients);
      AddForms(*op->own_params, args.accumulate);
    }
    // Overwrites whatever the kernel has computed.
    if (op->layer->frozen) WriteZeros(device_gradients, op->layer->param_range);
    if (last) Announce(gradients, op->layer->param_range, sink);
  }
  if (by_layer || program.params == nullptr) return;
  forms_.Clear();
  for (const Op& op : program.ops) {
    if (op.has_backward && op.own_params != nullptr && !op.layer->frozen) {
      ListForms(op, op.param_gradients, device_gradients);
    }
  }
  AddForms(*program.params, args.accumulate);
}

void Net::RunBackward(Op& op, float* gradients, KernelArgs& args) {
  if (op.layer != nullptr) {
    BindParams(op.param_gradients, op.param_blocks, graph_.weights(), op.layer->first_param,
               gradients);
  }
  Call(op, true, args);
  if (op.add == nullptr) return;
  KernelArgs branches;
  branches.inputs = op.input_gradients;
  branches.outputs = op.sums;
  op.add->Forward(branches);
}

void Net::Announce(Arena gradients, Range range, GradientSink* sink) {
  if (sink == nullptr && gradients.queue != nullptr) return;  // they are where they should be
  ReadyEvent written = copies_.ReturnGradients(gradients, range);
  if (sink == nullptr) return;
  announcements_.push_back({range, std::move(written)});
  TellSink(*sink, false);
}

void Net::TellSink(GradientSink& sink, bool all) {
  for (; announced_ < announcements_.size(); ++announced_) {
    const Announcement& next = announcements_[announced_];
    if (!all && !next.written.Done()) return;
    sink.Ready(next.range, next.written);
  }
}

// Makes the same sums in the same order as the other workers' layers; they run on the host, for there is nothing to
// compute.
void Net::SyncWithoutSamples(Arena given, WorkerSums& sums) const {
  const bool any = std::ranges::any_of(
      graph_.layers(), [](const GraphLayer& layer) { return layer.syncs_workers(); });
  if (!any) return;
  std::vector<float> copy;
  float* state = given.data;
  if (given.queue != nullptr) {
    copy.resize(static_cast<size_t>(graph_.state().size()));
    state = copy.data();
    CopyOut(state, given, graph_.state().size());
  }
  for (const GraphLayer& layer : graph_.layers()) {
    if (!layer.syncs_workers()) continue;
    std::vector<float*> states;
    for (size_t s = 0; s < layer.states.size(); ++s) {
      states.push_back(state + graph_.state().entries[layer.first_state + s].range.begin);
    }
    layer.layer->ForwardWithoutSamples(sums, states);
  }
  for (auto layer = graph_.layers().rbegin(); layer != graph_.layers().rend(); ++layer) {
    if (layer->syncs_workers()) layer->layer->BackwardWithoutSamples(sums);
  }
  if (given.queue != nullptr) CopyIn(given, state, graph_.state().size());
}

void Net::WriteZeros(float* gradients, Range range) {
  if (zero_ == nullptr) {
    zero_ = InsertedKernels::Make("zero", device_, "model '" + graph_.name() + "'");
  }
  const Tensor zeros = {gradients + range.begin, {range.size()}};
  KernelArgs args;
  args.outputs = {&zeros, 1};
  zero_->Forward(args);
}

void Net::WriteZeroGradients(Arena gradients, GradientSink* sink, PartOfStep part) {
  const int64_t elements = graph_.weights().size();
  if (part.first) WriteZeros(copies_.Gradients(gradients, elements), {0, elements});
  if (!part.last) return;
  for (auto layer = graph_.layers().rbegin(); layer != graph_.layers().rend(); ++layer) {
    if (!layer->params.empty()) Announce(gradients, layer->param_range, sink);
  }
}

// Requests copies of the sums of the losses and metrics, of an evaluation or on a device without a queue.
void Net::AskForSums(const Program& program) {
  const size_t metrics = program.metric_sums.size();
  if (sums_.bytes() < (1 + metrics) * sizeof(double)) {
    sums_ = Buffer((1 + metrics) * sizeof(double));
    // A copy to unpinned memory would block.
    if (device_.queue != nullptr) sums_.PinFor(device_.queue);
  }
  auto* const to = static_cast<double*>(sums_.data());
  const auto ask = [&](double* sum, int slot) {
    copies_.ReturnSum(sum, program.slots[slot].tensor.data);
  };
  to[0] = 0;
  if (program.loss_sum >= 0) ask(to, program.loss_sum);
  for (size_t m = 0; m < metrics; ++m) ask(to + 1 + m, program.metric_sums[m]);
}

// Waits for all submitted work and returns the sums, valid until the next request.
std::span<const double> Net::ReadSums(const Program& program) {
  device_.Record().Wait();
  return {static_cast<const double*>(sums_.data()), 1 + program.metric_sums.size()};
}

// Copies the caller's memory to where the kernels can access it, if necessary.
Net::DeviceInputs Net::Bring(ConstArena weights, ConstArena state, const NetInput& input,
                             bool again) {
  DeviceInputs device_inputs = {copies_.Weights(weights, graph_.weights().size(), again).data,
                                copies_.State(state, graph_.state().size(), again).data, input};
  if (!input.on_device) device_inputs.input.fields = copies_.Fields(input.fields);
  return device_inputs;
}

BroughtModel Net::Bring(ConstArena weights, ConstArena state) {
  const BroughtModel model = {copies_.Weights(weights, graph_.weights().size()),
                              copies_.State(state, graph_.state().size())};
  device_.Record().Wait();  // the caller may change its memory again
  return model;
}

StepResult Net::Step(ConstArena weights, Arena gradients, Arena state, const NetInput& input,
                     GradientSink* sink, PartOfStep part) {
  announcements_.clear();
  announced_ = 0;
  if (input.samples == 0) {
    const Arena device_state = copies_.State(state, graph_.state().size(), !part.first);
    if (input.worker_sums != nullptr) SyncWithoutSamples(device_state, *input.worker_sums);
    if (part.last) copies_.ReturnState(state, graph_.state().size());
    WriteZeroGradients(gradients, sink, part);
    if (sink != nullptr) TellSink(*sink, true);
    copies_.WaitForGradients();
    device_.Record().Wait();
    return {};
  }
  Program& program = ProgramFor(Mode::kTrain, input);
  KernelArgs args;
  static_cast<StepValues&>(args) = ValuesOf(input);
  args.accumulate = !part.first;
  const DeviceInputs device_inputs = Bring(weights, state, input, !part.first);
  const auto run = [&] {
    RunForward(program, device_inputs, args);
    if (own_steps_ == nullptr) AskForSums(program);
    RunBackward(program, gradients, args, part.last, sink);
    if (part.last) copies_.ReturnState(state, graph_.state().size());
  };
  if (own_steps_ == nullptr) {
    run();
  } else {
    own_steps_->Begin();
    args.values = own_steps_->Value<StepValues>(args);
    own_steps_->Add({}, run);
    AddSums(*own_steps_, program);
    own_steps_->Launch();
  }
  if (sink != nullptr) TellSink(*sink, true);
  copies_.WaitForGradients();
  if (own_steps_ != nullptr) return ResultOf(own_steps_->Wait().back());
  const std::span<const double> sums = ReadSums(program);
  return {.loss_sum = sums[0], .correct = sums.size() > 1 ? static_cast<int64_t>(sums[1]) : -1};
}

StepResult Net::Submit(StepGraph& graph, ConstArena weights, Arena gradients, Arena state,
                       const NetInput& input, GradientSink* sink) {
  DT_CHECK(CanSubmit(input));
  for (const ConstArena& arena : {weights, ConstArena(gradients), ConstArena(state)}) {
    DT_CHECK(arena.data == nullptr || arena.queue == device_.queue.get());
  }
  Program& program = ProgramFor(Mode::kTrain, input);
  KernelArgs args;
  const StepValues* const values = graph.Value(ValuesOf(input));
  const bool scaled = device_.precision == Precision::kFp16;
  if (scaled) graph.ScaleLoss(&values->loss_scale);
  args.values = values;
  args.progress = graph.state();
  key_ = {&program,        StepGraph::AsKey(program.id),
          args.values,     arena_.data(),
          scratch_.data(), weights.data,
          gradients.data,  state.data};
  for (const Tensor& field : input.fields) key_.push_back(field.data);
  const DeviceInputs device_inputs = {weights.data, state.data, input};
  graph.Add(key_, [this, &graph, &program, gradients, device_inputs, args, scaled]() mutable {
    RunForward(program, device_inputs, args);
    RunBackward(program, gradients, args, true, nullptr);
    if (scaled) graph.UnscaleGradients(gradients.data, graph_.weights().size());
  });
  AddSums(graph, program);
  if (sink == nullptr) return {.later = true};
  for (const Op& op : std::views::reverse(program.ops)) {
    if (!op.params.empty()) sink->Ready(op.layer->param_range, ReadyEvent());
  }
  return {.later = true};
}

StepValues Net::ValuesOf(const NetInput& input) {
  const int64_t terms = input.global_terms > 0 ? input.global_terms : input.global_samples;
  return {.loss_scale = 1.0f / static_cast<float>(terms),
          .seed = input.seed,
          .step = input.step,
          .first_position = input.first_position};
}

void Net::AddSums(StepGraph& graph, const Program& program) const {
  const auto sum = [&](int slot) {
    return static_cast<const double*>(program.slots[static_cast<size_t>(slot)].tensor.data);
  };
  if (program.loss_sum < 0) return;
  graph.Sum(sum(program.loss_sum));
  if (!program.metric_sums.empty()) graph.Sum(sum(program.metric_sums[0]));
}

StepResult Net::ResultOf(const StepResults& results) {
  return {.loss_sum = results.sums[0],
          .correct = results.count > 1 ? static_cast<int64_t>(results.sums[1]) : -1};
}

EvaluateResult Net::Evaluate(ConstArena weights, ConstArena state, const NetInput& input) {
  return Evaluate(Mode::kEvaluate, weights, state, input);
}

EvaluateResult Net::EstimateState(ConstArena weights, Arena state, const NetInput& input) {
  const EvaluateResult result = Evaluate(Mode::kEstimate, weights, state, input);
  copies_.ReturnState(state, graph_.state().size());
  device_.Record().Wait();
  return result;
}

EvaluateResult Net::Evaluate(Mode mode, ConstArena weights, ConstArena state,
                             const NetInput& input) {
  Program& program = ProgramFor(mode, input);
  KernelArgs args;
  static_cast<StepValues&>(args) = ValuesOf(input);
  RunForward(program, Bring(weights, state, input), args);
  EvaluateResult result;
  result.samples = input.samples;
  AskForSums(program);
  const std::span<const double> sums = ReadSums(program);
  result.loss_sum = sums[0];
  for (const double count : sums.subspan(1)) {
    result.metric_counts.push_back(static_cast<int64_t>(count));
  }
  return result;
}

StepDecoder& Net::StartDecoding(ConstArena weights, ConstArena state, const NetInput& input) {
  Program& program = ProgramFor(Mode::kEvaluate, input);
  KernelArgs args;
  static_cast<StepValues&>(args) = ValuesOf(input);
  const DeviceInputs device_inputs = Bring(weights, state, input);
  MakeForms(program, device_inputs.weights);
  for (Op& op : program.ops) {
    Bind(program, op, device_inputs, args);
    if (StepDecoder* const decoder = op.kernel->step_decoder()) {
      Give(op, args);
      decoder->Start(args);
      return *decoder;
    }
    Call(op, false, args);
  }
  throw ConfigError(fmt::format("model '{}' has no decoder", graph_.name()),
                    "only a model that writes sentences can translate");
}

bool Net::CanDecode() {
  Prepare(Mode::kEvaluate, 1);
  const std::vector<Op>& ops = programs_.back()->ops;
  return std::any_of(ops.begin(), ops.end(),
                     [](const Op& op) { return op.kernel->step_decoder() != nullptr; });
}

std::map<std::string, std::string> Net::ChosenKernels(int64_t samples) const {
  std::map<std::string, std::string> chosen;
  const auto it = std::find_if(programs_.rbegin(), programs_.rend(), [&](const auto& program) {
    return program->mode == Mode::kTrain && program->samples == samples;
  });
  if (it == programs_.rend()) return chosen;
  for (const Op& op : (*it)->ops) {
    // Metrics do not affect the results.
    if (op.layer == nullptr || op.layer->layer->role() == LayerRole::kMetric) continue;
    const std::string choice = op.kernel->choice();
    chosen[op.name] = op.implementation + (choice.empty() ? "" : ':' + choice);
  }
  return chosen;
}

int64_t LargestPart(int64_t samples, int64_t parts) { return PartOf(samples, parts, 0).size(); }

StepResult StepInParts(Net& net, int64_t parts, ConstArena weights, Arena gradients, Arena state,
                       const NetInput& input, GradientSink* sink) {
  if (parts == 1) return net.Step(weights, gradients, state, input, sink);
  StepResult sum;
  std::vector<Tensor> fields(input.fields.size());
  for (int64_t part = 0; part < parts; ++part) {
    const Range rows = PartOf(input.samples, parts, part);
    for (size_t f = 0; f < fields.size(); ++f) fields[f] = RowsOf(input.fields[f], rows);
    NetInput micro = input;
    micro.fields = fields;
    micro.samples = rows.size();
    micro.first_position = input.first_position + rows.begin;
    const StepResult found =
        net.Step(weights, gradients, state, micro, sink, {part == 0, part + 1 == parts});
    sum.loss_sum += found.loss_sum;
    sum.correct = std::min(sum.correct, found.correct) < 0 ? -1 : sum.correct + found.correct;
  }
  return sum;
}

void PrepareParts(Net& net, int64_t samples, int64_t parts) {
  for (int64_t part = 0; part < parts; ++part) {
    net.Prepare(Mode::kTrain, PartOf(samples, parts, part).size());
  }
}

}  // namespace dtrain
