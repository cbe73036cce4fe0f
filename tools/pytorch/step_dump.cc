// step_dump: writes the results of a model for given weights and a given batch into files, as dtrain's half
// of tools/pytorch/compare.py.
//
//   step_dump step|trace|evaluate|layers MODEL.yaml INPUT OUTPUT [threads=N] [TYPE=IMPLEMENTATION
//   ...]
//
// INPUT and OUTPUT are safetensors files.  INPUT holds parameters and batch-norm statistics by
// name, the model's inputs as `input.<name>`, and `terms`, the divisor of the loss.
//
//   step      one training step: `loss` (mean), `logits` (the input of the loss layer),
//             `gradient.<parameter>`, `state.<name>`
//   trace     the same, and `<layer>.output` of every layer that ran; of a layer with a fused ReLU it is
//             the output of the ReLU
//   evaluate  `loss`, `logits`
//   layers    every layer alone, if INPUT has its `<layer>.input.<k>` (and, except for losses,
//             `<layer>.output_gradient`): `<layer>.output`, `<layer>.input_gradient.<k>` and
//             `<layer>.gradient.<parameter>`
//
// TYPE=IMPLEMENTATION names the kernel of all layers of a type, as in convolution=onednn.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <map>

#include "framework/checkpoint/safetensors.h"
#include "framework/core/error.h"
#include "framework/core/isa.h"
#include "framework/device/buffer.h"
#include "framework/device/cpu/threads.h"
#include "framework/kernels/cpu/reorder.h"
#include "framework/nn/net.h"

namespace dtrain {
namespace {

struct Options {
  std::string what, model, input, output;
  int threads = 1;
  std::map<std::string, std::string> implementations;  // by layer type
};

Options Parse(int argc, char** argv) {
  if (argc < 5) {
    throw UsageError(
        "step_dump step|trace|evaluate|layers MODEL INPUT OUTPUT [threads=N] [TYPE=KERNEL]");
  }
  Options options{argv[1], argv[2], argv[3], argv[4], 1, {}};
  for (int i = 5; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    if (equals == std::string::npos) throw UsageError("no KEY=VALUE: " + argument);
    const std::string value = argument.substr(equals + 1);
    if (argument.starts_with("threads=")) {
      options.threads = std::atoi(value.c_str());
    } else {
      options.implementations[argument.substr(0, equals)] = value;
    }
  }
  return options;
}

// Memory, with the view that a kernel gets.
struct Held {
  Buffer memory;
  Tensor tensor;

  explicit Held(const Shape& shape, Format format = Format::kPlain, DType dtype = DType::kF32)
      : memory(static_cast<size_t>(std::max<int64_t>(StoredCount(shape, format), 1)) *
               SizeOf(dtype)),
        tensor{memory.data(), shape, dtype, format} {}
};

Shape ShapeOf(const SafeTensorEntry& entry) { return Shape(std::span(entry.shape)); }

Held Load(const SafetensorsReader& file, const std::string& name) {
  const SafeTensorEntry* entry = file.Find(name);
  if (entry == nullptr) throw DataError(file.path().string() + ": no tensor " + name);
  const bool whole = entry->dtype == "I32" || entry->dtype == "I64";
  Held held(ShapeOf(*entry), Format::kPlain, whole ? DType::kI32 : DType::kF32);
  if (whole) {
    file.ReadInts(*entry, held.tensor.i32());
  } else {
    file.ReadFloats(*entry, held.tensor.f32());
  }
  return held;
}

// The content of OUTPUT: plain fp32 tensors by name.
class Results {
 public:
  void Add(const std::string& name, const Tensor& tensor) {
    Held& held = held_.emplace_back(tensor.shape);
    names_.push_back(name);
    Reorder(tensor, held.tensor, Device{});
  }
  void Add(const std::string& name, const Shape& shape, const float* values) {
    Add(name, {const_cast<float*>(values), shape, DType::kF32, Format::kPlain});
  }
  void Write(const std::string& path) const {
    std::vector<SafeTensorSource> sources;
    for (size_t i = 0; i < held_.size(); ++i) {
      SafeTensorSource source{names_[i], "F32", {}, held_[i].memory.data()};
      const Shape& shape = held_[i].tensor.shape;
      for (int axis = 0; axis < shape.rank(); ++axis) source.shape.push_back(shape[axis]);
      sources.push_back(std::move(source));
    }
    WriteSafetensors(path, std::move(sources), {});
  }

 private:
  std::deque<Held> held_;
  std::vector<std::string> names_;
};

std::vector<float> LoadArena(const SafetensorsReader& file, const ArenaLayout& layout) {
  std::vector<float> arena(static_cast<size_t>(layout.size()));
  for (const ArenaEntry& entry : layout.entries) {
    const Held held = Load(file, entry.name);
    if (held.tensor.shape != Shape(std::span(entry.shape))) {
      throw DataError(fmt::format("{}: {} is {}", file.path().string(), entry.name,
                                  held.tensor.shape.ToString()));
    }
    std::copy_n(held.tensor.f32(), entry.range.size(), arena.data() + entry.range.begin);
  }
  return arena;
}

void AddArena(const std::string& prefix, const ArenaLayout& layout, const std::vector<float>& arena,
              Results& results) {
  for (const ArenaEntry& entry : layout.entries) {
    results.Add(prefix + entry.name, Shape(std::span(entry.shape)),
                arena.data() + entry.range.begin);
  }
}

Device DeviceFor(const Options& options) { return {DeviceKind::kCpu, options.threads, CpuIsa()}; }

// Runs the whole model through Net.
void DumpNet(const Options& options, const Graph& graph, const SafetensorsReader& file,
             Results& results) {
  std::map<std::string, std::string> kernels;
  for (const GraphLayer& layer : graph.layers()) {
    const auto named = options.implementations.find(layer.type);
    if (named != options.implementations.end()) kernels[layer.name] = named->second;
  }
  std::deque<Held> fields;
  std::vector<Tensor> views;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const std::string name = "input." + graph.inputs()[i].name;
    views.push_back(fields.emplace_back(Load(file, name)).tensor);
  }
  NetInput input;
  input.fields = views;
  input.samples = views[0].shape[0];
  input.global_samples = input.samples;
  input.global_terms = Load(file, "terms").tensor.i32()[0];
  std::vector<float> weights = LoadArena(file, graph.weights());
  std::vector<float> state = LoadArena(file, graph.state());
  std::vector<float> gradients(weights.size());
  Net net(graph, DeviceFor(options), kernels);
  net.set_observer([&](const KernelTiming& call) {
    const bool loss = call.layer != nullptr && call.layer->layer->role() == LayerRole::kLoss;
    if (loss && !call.backward) results.Add("logits", call.args->inputs[0]);
    if (options.what != "trace" || call.backward || call.layer == nullptr) return;
    if (call.args->outputs[0].dtype == DType::kF32) {
      results.Add(call.layer->name + ".output", call.args->outputs[0]);
    }
  });
  double loss = 0;
  if (options.what != "evaluate") {
    loss = net.Step(weights.data(), gradients.data(), state.data(), input, nullptr).loss_sum;
    AddArena("gradient.", graph.weights(), gradients, results);
    AddArena("state.", graph.state(), state, results);
  } else {
    loss = net.Evaluate(weights.data(), state.data(), input).loss_sum;
  }
  const auto mean = static_cast<float>(loss / static_cast<double>(input.global_terms));
  results.Add("loss", Shape{1}, &mean);
}

// Runs one layer alone, with the default kernel for plain inputs or the one on the command line.
class LayerRun {
 public:
  LayerRun(const Options& options, const Graph& graph, int index, const SafetensorsReader& file)
      : layer_(graph.layers()[index]), device_(DeviceFor(options)), file_(file) {
    request_.layer = layer_.layer.get();
    request_.layer_index = static_cast<uint64_t>(index);
    request_.device = device_;
    std::vector<Held> plain;
    for (size_t k = 0; k < layer_.inputs.size(); ++k) {
      plain.push_back(Load(file, fmt::format("{}.input.{}", layer_.name, k)));
      request_.inputs.push_back(plain.back().tensor.shape);
      request_.available.push_back(Format::kPlain);
      request_.needs_input_gradient.push_back(layer_.layer->InputHasGradient(static_cast<int>(k)));
    }
    request_.outputs = layer_.layer->InferShapes(request_.inputs);
    Choose(options);
    for (size_t k = 0; k < plain.size(); ++k) {
      inputs_.push_back(As(plain[k].tensor, offer_.inputs[k].format));
      input_gradients_.emplace_back(request_.inputs[k], offer_.inputs[k].format);
    }
    outputs_.emplace_back(request_.outputs[0], offer_.outputs[0].format);
    for (int p = 0; p < static_cast<int>(layer_.params.size()); ++p) {
      const std::string name = graph.weights().entries[layer_.first_param + p].name;
      params_.push_back(Load(file, name));
      param_names_.push_back(name);
      param_gradients_.emplace_back(params_.back().tensor.shape);
    }
    for (int s = 0; s < static_cast<int>(layer_.states.size()); ++s) {
      state_.push_back(Load(file, graph.state().entries[layer_.first_state + s].name));
    }
    scratch_ = Buffer(std::max<size_t>(kernel_->Needs().scratch_bytes, 1));
    saved_ = Buffer(std::max<size_t>(kernel_->Needs().saved_bytes, 1));
  }

  void Run(Results& results) {
    Bind();
    kernel_->Forward(args_);
    results.Add(layer_.name + ".output", outputs_[0].tensor);
    if (layer_.layer->role() == LayerRole::kMetric) return;
    LoadOutputGradient();
    kernel_->Backward(args_);
    for (size_t k = 0; k < input_gradients_.size(); ++k) {
      if (!request_.needs_input_gradient[k]) continue;
      results.Add(fmt::format("{}.input_gradient.{}", layer_.name, k), input_gradients_[k].tensor);
    }
    for (size_t p = 0; p < params_.size(); ++p) {
      results.Add(layer_.name + ".gradient." + param_names_[p], param_gradients_[p].tensor);
    }
  }

 private:
  void Choose(const Options& options) {
    const auto named = options.implementations.find(layer_.type);
    const KernelEntry* best = nullptr;
    for (const KernelEntry& entry : KernelRegistry::Of(layer_.type, DeviceKind::kCpu)) {
      const std::optional<KernelOffer> offer = entry.offer(request_);
      if (!offer) continue;
      const bool wanted =
          named != options.implementations.end() && named->second == entry.implementation;
      if (best != nullptr && !wanted && offer->preference <= offer_.preference) continue;
      best = &entry;
      offer_ = *offer;
      if (wanted) break;
    }
    if (best == nullptr) throw ConfigError("no kernel runs layer " + layer_.name);
    kernel_ = best->make(request_, offer_);
  }

  Held As(const Tensor& plain, Format format) const {
    Held held(plain.shape, format, plain.dtype);
    if (plain.dtype == DType::kF32) {
      Reorder(plain, held.tensor, device_);
    } else {
      std::copy_n(plain.i32(), plain.shape.count(), held.tensor.i32());
    }
    return held;
  }

  static std::vector<Tensor> Views(const std::vector<Held>& all) {
    std::vector<Tensor> views;
    for (const Held& held : all) views.push_back(held.tensor);
    return views;
  }

  void Bind() {
    views_ = {Views(inputs_), Views(outputs_),         {},           Views(input_gradients_),
              Views(params_), Views(param_gradients_), Views(state_)};
    for (size_t k = 0; k < views_[3].size(); ++k) {
      if (!request_.needs_input_gradient[k]) views_[3][k].data = nullptr;
    }
    args_.inputs = views_[0];
    args_.outputs = views_[1];
    args_.input_gradients = views_[3];
    args_.params = views_[4];
    args_.param_gradients = views_[5];
    args_.state = views_[6];
    args_.scratch = scratch_.data();
    args_.saved = saved_.data();
    args_.loss_scale = 1.0f / static_cast<float>(Load(file_, "terms").tensor.i32()[0]);
  }

  void LoadOutputGradient() {
    if (layer_.layer->role() == LayerRole::kLoss) {
      output_gradients_.emplace_back(request_.outputs[0], offer_.outputs[0].format);
    } else {
      output_gradients_.push_back(
          As(Load(file_, layer_.name + ".output_gradient").tensor, offer_.outputs[0].format));
    }
    views_[2] = Views(output_gradients_);
    args_.output_gradients = views_[2];
  }

  const GraphLayer& layer_;
  const Device device_;
  const SafetensorsReader& file_;
  KernelRequest request_;
  KernelOffer offer_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<Held> inputs_, outputs_, output_gradients_, input_gradients_, params_,
      param_gradients_, state_;
  std::vector<std::string> param_names_;
  std::array<std::vector<Tensor>, 7> views_;
  Buffer scratch_, saved_;
  KernelArgs args_;
};

void DumpLayers(const Options& options, const Graph& graph, const SafetensorsReader& file,
                Results& results) {
  for (size_t i = 0; i < graph.layers().size(); ++i) {
    const GraphLayer& layer = graph.layers()[i];
    if (layer.layer->is_view() || file.Find(layer.name + ".input.0") == nullptr) continue;
    LayerRun(options, graph, static_cast<int>(i), file).Run(results);
  }
}

int Main(int argc, char** argv) {
  const Options options = Parse(argc, argv);
  ApplyThreadBudget(options.threads);
  const SafetensorsReader file(options.input);
  const Graph graph = Graph::FromFile(options.model, {});
  Results results;
  if (options.what == "layers") {
    DumpLayers(options, graph, file, results);
  } else {
    DumpNet(options, graph, file, results);
  }
  results.Write(options.output);
  return 0;
}

}  // namespace
}  // namespace dtrain

int main(int argc, char** argv) {
  try {
    return dtrain::Main(argc, argv);
  } catch (const dtrain::Error& error) {
    std::cerr << "step_dump: " << error.what() << '\n';
    if (!error.hint().empty()) std::cerr << "    " << error.hint() << '\n';
    return static_cast<int>(error.code());
  }
}
