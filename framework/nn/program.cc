#include "framework/nn/program.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "framework/core/check.h"
#include "framework/core/memory.h"
#include "framework/nn/kernel.h"

namespace dtrain {
namespace {

// A bound for the code that a library generates for a layer: oneDNN 2.6 reads address 0 if an allocation fails.
constexpr size_t kKernelBytes = size_t{16} << 20;

class Compiler {
 public:
  Compiler(const Graph& graph, Mode mode, std::span<const Shape> inputs, const Device& device,
           const KernelChoices& kernels)
      : graph_(graph),
        layers_(graph.LockLayers()),
        shapes_(graph.ShapesFor(inputs)),
        device_(device),
        kernels_(kernels) {
    program_.mode = mode;
    program_.samples = inputs[0][0];
    program_.inputs.assign(inputs.begin(), inputs.end());
    slot_of_value_.assign(graph.values().size(), -1);
  }

  Program Run() {
    for (size_t i = 0; i < graph_.inputs().size(); ++i) AddInput(static_cast<int>(i));
    const auto accepts = [this](const Call& call) { return Accepts(call); };
    calls_ = FuseAll(graph_, accepts);
    for (const Call& call : calls_) AddCall(call);
    AddSums();
    PlaceMemory(program_);
    AddAdditions();
    return std::move(program_);
  }

 private:
  void AddInput(int index) {
    Slot slot;
    slot.tensor = {nullptr, shapes_[index], graph_.inputs()[index].dtype, Format::kPlain};
    slot.external = index;
    slot_of_value_[index] = AddSlot(std::move(slot));
  }

  int AddSlot(Slot slot) {
    program_.slots.push_back(std::move(slot));
    return static_cast<int>(program_.slots.size()) - 1;
  }

  KernelRequest RequestFor(const Call& call) const {
    const GraphLayer& layer = graph_.layers()[call.layer];
    KernelRequest request;
    request.layer = layer.layer.get();
    request.layer_index = static_cast<uint64_t>(call.layer);
    request.fused_relu = call.fused_relu;
    request.fused_sum = call.fused_sum;
    if (call.pooling >= 0) request.pooling = graph_.layers()[call.pooling].layer->max_windows();
    request.mode = layer.frozen && !layer.states.empty() ? Mode::kEvaluate : program_.mode;
    request.device = device_;
    if (const auto named = kernels_.Of(layer.name)) request.choice = named->choice;
    request.measure = kernels_.measure;
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const int slot = slot_of_value_[call.inputs[i]];
      request.inputs.push_back(shapes_[call.inputs[i]]);
      request.available.push_back(slot < 0 ? Form() : program_.slots[slot].tensor.form());
      request.needs_input_gradient.push_back(WantsGradient(layer, i, slot));
    }
    request.outputs.push_back(shapes_[layer.output]);
    return request;
  }

  // True if all readers of a value need it plain.  Only kernels of devices with a queue ask.
  bool ReadAsPlain(int value) const {
    bool read = false;
    for (const Call& call : calls_) {
      const auto at = std::ranges::find(call.inputs, value);
      if (at == call.inputs.end()) continue;
      if (!NeedsPlain(call, static_cast<size_t>(at - call.inputs.begin()))) return false;
      read = true;
    }
    return read;
  }
  bool NeedsPlain(const Call& call, size_t input) const {
    const GraphLayer& layer = graph_.layers()[call.layer];
    if (layer.layer->is_view()) return true;
    KernelRequest request = RequestFor(call);
    // A kernel that follows its input would take them so.
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      if (slot_of_value_[call.inputs[i]] < 0) request.available[i] = Format::kChannelsLast;
    }
    return Choose(layer, request).offer.inputs[input].plain();
  }

  bool WantsGradient(const GraphLayer& layer, size_t input, int slot) const {
    return program_.mode == Mode::kTrain &&
           layer.layer->InputHasGradient(static_cast<int>(input)) && slot >= 0 &&
           program_.slots[slot].needs_gradient;
  }

  // Called before formats are known, so it assumes plain inputs.
  bool Accepts(const Call& call) const {
    // A plan that names a kernel for the pooling was made without this fusion.
    const auto& layers = graph_.layers();
    if (call.pooling >= 0 && kernels_.Of(layers[call.pooling].name)) return false;
    const auto named = kernels_.Of(layers[call.layer].name);
    KernelRequest request = RequestFor(call);
    std::fill(request.available.begin(), request.available.end(), Form());
    const auto& entries = KernelRegistry::Of(layers[call.layer].type, device_.kind);
    return std::any_of(entries.begin(), entries.end(), [&](const KernelEntry& entry) {
      const bool may_run = !named || named->implementation == entry.implementation;
      return may_run && OfferOf(entry, request).has_value();
    });
  }

  static std::optional<KernelOffer> OfferOf(const KernelEntry& entry,
                                            const KernelRequest& request) {
    std::optional<KernelOffer> offer = entry.offer(request);
    if (offer && request.fused_sum && !offer->sums) return std::nullopt;
    if (offer && request.pooling != nullptr && !offer->pools) return std::nullopt;
    return offer;
  }

  struct Choice {
    const KernelEntry* entry = nullptr;
    KernelOffer offer;
  };

  Choice Choose(const GraphLayer& layer, const KernelRequest& request) const {
    const auto named = kernels_.Of(layer.name);
    Choice best;
    for (const KernelEntry& entry : KernelRegistry::Of(layer.type, device_.kind)) {
      std::optional<KernelOffer> offer = OfferOf(entry, request);
      if (!offer) continue;
      if (named && named->implementation == entry.implementation) {
        return {&entry, std::move(*offer)};
      }
      if (best.entry == nullptr || offer->preference > best.offer.preference) {
        best = {&entry, std::move(*offer)};
      }
    }
    if (named) {
      throw ConfigError(
          fmt::format("layer '{}' ({}): the execution plan names kernel '{}', which does "
                      "not exist or cannot run it here",
                      layer.name, layer.type, named->implementation),
          "use a plan of this program, or plan: auto");
    }
    if (best.entry == nullptr) {
      throw ConfigError(fmt::format("layer '{}' ({}): no kernel runs it on device '{}'", layer.name,
                                    layer.type, NameOf(device_.kind)),
                        "device: cpu");
    }
    return best;
  }

  void AddCall(const Call& call) {
    const GraphLayer& layer = graph_.layers()[call.layer];
    // In training, computes only the first metric, by which a run is evaluated, and none on a device with a queue: two
    // more kernels and a copy per step would slow small models there.
    const bool measures = layer.layer->role() == LayerRole::kMetric;
    const bool left_out = device_.queue != nullptr || !metrics_.empty();
    if (measures && program_.mode == Mode::kTrain && left_out) return;
    if (layer.layer->is_view()) return AddView(call);
    KernelRequest request = RequestFor(call);
    request.read_as_plain = device_.queue != nullptr && ReadAsPlain(call.output);
    const Choice choice = Choose(layer, request);
    Op op;
    op.name = layer.name;
    op.implementation = choice.entry->implementation;
    op.layer = &layer;
    op.kernel = WithMemoryFor(fmt::format("the kernels of layer '{}'", layer.name), [&] {
      RequireMemory(kKernelBytes);
      return choice.entry->make(request, choice.offer);
    });
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      op.inputs.push_back(SlotAs(call.inputs[i], choice.offer.inputs[i]));
    }
    Slot output;
    const Form form = choice.offer.outputs[0];
    output.tensor = {nullptr, shapes_[call.output], form.dtype, form.format};
    output.needs_gradient = (!layer.params.empty() && !layer.frozen) ||
                            std::count(request.needs_input_gradient.begin(),
                                       request.needs_input_gradient.end(), true) > 0;
    op.has_backward = program_.mode == Mode::kTrain && output.needs_gradient;
    slot_of_value_[call.output] = AddOp(std::move(op), std::move(output));
    Note(layer, slot_of_value_[call.output]);
  }

  void AddView(const Call& call) {
    const int source = SlotAs(call.inputs[0], Format::kPlain);
    Slot view;
    view.tensor = program_.slots[source].tensor;
    view.tensor.shape = shapes_[call.output];
    view.external = program_.slots[source].external;
    view.producer = program_.slots[source].producer;
    view.needs_gradient = program_.slots[source].needs_gradient;
    view.view_of = source;
    slot_of_value_[call.output] = AddSlot(std::move(view));
  }

  int AddOp(Op op, Slot output) {
    const int index = static_cast<int>(program_.ops.size());
    op.needs = op.kernel->Needs();
    for (const int slot : op.inputs) program_.slots[slot].readers.push_back(index);
    output.producer = index;
    const int slot = AddSlot(std::move(output));
    op.output = slot;
    program_.ops.push_back(std::move(op));
    return slot;
  }

  // Returns the slot of `value` in a form; inserts a reorder if necessary, once for all readers.
  int SlotAs(int value, Form form) {
    const int slot = slot_of_value_[value];
    const Form now = program_.slots[slot].tensor.form();
    if (now.dtype == DType::kI32)
      form.dtype = now.dtype;  // labels and words are no numbers to round
    if (now == form) return slot;
    const auto [it, fresh] = reordered_.try_emplace({value, form.format, form.dtype}, -1);
    if (!fresh) return it->second;
    Op op;
    const std::string& name = graph_.values()[value].name;
    op.name = name + ":reorder";
    op.implementation = fmt::format("{}>{}", NameOf(now), NameOf(form));
    op.kernel = InsertedKernels::Make("reorder", device_, "value '" + name + "'");
    op.inputs = {slot};
    op.has_backward = program_.mode == Mode::kTrain && program_.slots[slot].needs_gradient;
    Slot output;
    output.tensor = program_.slots[slot].tensor;
    output.tensor.format = form.format;
    output.tensor.dtype = form.dtype;
    output.needs_gradient = program_.slots[slot].needs_gradient;
    it->second = AddOp(std::move(op), std::move(output));
    return it->second;
  }

  void Note(const GraphLayer& layer, int slot) {
    if (layer.layer->role() == LayerRole::kLoss) losses_.push_back({layer.name, slot});
    if (layer.layer->role() == LayerRole::kMetric) metrics_.push_back({layer.name, slot});
  }

  // Sums follow the forward calls, so that the host reads no numbers of single samples.
  void AddSums() {
    if (!losses_.empty()) program_.loss_sum = AddSum(losses_);
    for (const NamedSlot& metric : metrics_) program_.metric_sums.push_back(AddSum({metric}));
  }

  struct NamedSlot {
    std::string name;
    int slot;
  };

  int AddSum(const std::vector<NamedSlot>& terms) {
    Op op;
    op.name = terms[0].name + ":sum";
    op.implementation = "sum";
    op.kernel = InsertedKernels::Make("sum", device_, "layer '" + terms[0].name + "'");
    for (const NamedSlot& term : terms) op.inputs.push_back(term.slot);
    Slot output;
    output.tensor = {nullptr, {1}, DType::kF64, Format::kPlain};
    return AddOp(std::move(op), std::move(output));
  }

  // Additions are known only after gradients have their blocks.
  void AddAdditions() {
    for (Op& op : program_.ops) {
      const bool adds = std::any_of(op.addend_blocks.begin(), op.addend_blocks.end(),
                                    [](int block) { return block >= 0; });
      if (adds) op.add = InsertedKernels::Make("add", device_, "layer '" + op.name + "'");
      if (op.param_blocks.empty()) continue;
      op.own_params = InsertedKernels::Make("params", device_, "layer '" + op.name + "'");
      if (program_.params != nullptr) continue;
      program_.params = InsertedKernels::Make("params", device_, "model '" + graph_.name() + "'");
    }
  }

  const Graph& graph_;
  const std::unique_lock<std::mutex> layers_;
  const std::vector<Shape> shapes_;  // of the graph's values
  const Device device_;
  const KernelChoices& kernels_;
  Program program_;
  std::vector<Call> calls_;
  std::vector<int> slot_of_value_;
  std::map<std::tuple<int, Format, DType>, int> reordered_;
  std::vector<NamedSlot> losses_, metrics_;  // [N], one number per sample
};

}  // namespace

Program Compile(const Graph& graph, Mode mode, std::span<const Shape> inputs, const Device& device,
                const KernelChoices& kernels) {
  return Compiler(graph, mode, inputs, device, kernels).Run();
}

}  // namespace dtrain
