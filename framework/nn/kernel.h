// Kernel is the arithmetic of a layer on a device, for one set of shapes and formats.
//
// A layer type may have several implementations for a device.  For each call the program
// (program.cc) asks all of them for an Offer and takes the one the execution plan names, else the
// offer with the highest preference.  The rule depends only on shapes, threads and instruction set, never on a
// measurement, so that two fresh runs choose alike.
//
//   DTRAIN_KERNEL("convolution", DeviceKind::kCpu, "onednn", OfferOneDnn, MakeOneDnn);
//
// Contract of a Kernel:
//   - inputs, outputs and gradients are valid for the call only; kernels keep offsets, no
//     addresses.
//   - Forward reads inputs and params, writes outputs (and `saved`, when training; and input gradients, where Needs says
//     so: then Backward writes none).
//   - Backward reads what its Needs name, writes input gradients with `=` (with `+=` the first where
//     `adds_input_gradient` is set; a null data pointer means that it is not needed) and parameter
//     gradients with `=`, or `+=` when `accumulate` is set.  It may destroy the output gradients.
//   - a layer with state that is frozen (Graph::Freeze) has the kernel of Mode::kEvaluate in every program: it reads the
//     state and leaves it, and its Backward, which no other layer's kernel of that mode needs, writes input gradients
//     alone.
//   - no allocation after construction; `scratch` is shared by all kernels of a net and holds
//     nothing between calls; `saved` lives from Forward to Backward of the same step.
//   - samples are independent of the position in the batch and of the other samples, so that the
//     forward result of a sample does not depend on how a batch is divided among ranks or threads,
//     except for the last bits of products by a GPU's libraries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/device/device.h"
#include "framework/device/step_graph.h"
#include "framework/device/tensor.h"
#include "framework/nn/layer.h"

namespace dtrain {

// FloatRoom divides a kernel's scratch or saved memory into named parts when the kernel is created.
//
//   FloatRoom room;
//   const int64_t gates = room.Take(batch * 3 * hidden);    // an offset, in floats
//   ... needs.scratch_bytes = room.bytes();                 // later: scratch + gates
class FloatRoom {
 public:
  // Parts begin on cache lines.
  int64_t Take(int64_t floats) {
    const int64_t at = floats_;
    floats_ += (floats + 15) / 16 * 16;
    return at;
  }
  size_t bytes() const { return static_cast<size_t>(floats_) * sizeof(float); }

 private:
  int64_t floats_ = 0;
};

// WorkerSums all-reduces a few values over all workers in the middle of a step, for layers whose result depends on
// other workers' samples (batch_norm with `sync`).
class WorkerSums {
 public:
  virtual ~WorkerSums() = default;

  // Replaces values[i] by the sum of every worker's values[i], added in rank order, so that all get the same bits.
  // Blocks until all workers have called it.  Every worker makes the same calls in the same order with the same number
  // of values; a worker whose share of the batch is empty takes part with zeros.
  virtual void Sum(std::span<double> values) = 0;
};

enum class Mode {
  kTrain,
  kEvaluate,
  // As kEvaluate, but a layer with state computes with the statistics of the batch, as in training, and replaces its
  // state by them.
  kEstimate,
};

// Holds the net's request for a kernel.
struct KernelRequest {
  const Layer* layer = nullptr;
  uint64_t layer_index = 0;   // index in the graph: keys the layer's random numbers
  std::vector<Shape> inputs;  // batch axis included; a kernel serves exactly these
  std::vector<Shape> outputs;
  std::vector<Form> available;  // current form of each input
  std::vector<bool> needs_input_gradient;
  bool read_as_plain = false;  // whoever reads output 0 needs it plain
  bool fused_relu = false;     // apply max(0, .) to output 0 (program.h)
  bool fused_sum = false;      // add the last input to output 0, before a fused ReLU (program.h)
  // The windows whose maxima are written in the place of output 0, before a fused ReLU (program.h); null: none.  They are
  // valid for the request only; `outputs` has the shape before that.
  const PoolingWindows* pooling = nullptr;
  Mode mode = Mode::kTrain;  // kEvaluate in every program for a frozen layer with state
  Device device;
  // Holds what Kernel::choice() returned when the plan was made; "": nothing.  A kernel that cannot do that here chooses as
  // without a plan: by its rule or, with `measure`, what it measures to be the fastest.
  std::string choice;
  bool measure = false;
};

// Holds an implementation's answer to a request.
struct KernelOffer {
  // The forms it needs, and those it produces; the net reorders inputs that differ.  A gradient has its value's form.
  std::vector<Form> inputs, outputs;
  bool sums = false;   // it does what fused_sum asks
  bool pools = false;  // it does what `pooling` asks; the maxima have the form outputs[0]
  // The highest wins.  0: a fallback that works everywhere; negative: taken only if the plan names it.
  int preference = 0;
};

// Holds the values that differ from step to step.
struct StepValues {
  // 1 / (terms of the global batch: samples, or words), times the factor of a LossScale.
  float loss_scale = 1;
  uint64_t seed = 0;
  uint64_t step = 0;
  int64_t first_position = 0;  // position of row 0 in the global batch
};

struct KernelNeeds {
  size_t scratch_bytes = 0;
  size_t saved_bytes = 0;
  bool backward_reads_inputs = false;
  bool backward_reads_outputs = false;
  bool forward_in_place = false;   // output 0 may share input 0's memory
  bool backward_in_place = false;  // input gradient 0 may share output gradient 0's memory
  bool backward_adds = false;  // it can add its input gradient 0 to what another reader has written
  // For a loss: Forward writes the input gradients as well, in training, and Backward does nothing.  Not with backward_adds.
  bool forward_writes_gradients = false;
  // Holds the form in which the kernel reads each parameter and writes its gradient; empty: that of the arenas.  The
  // program makes parameters of another form before the first kernel of a step, all at once, and adds their gradients to
  // the arena's.  So the kernel writes these with `=`, even with `accumulate`.
  std::vector<Form> params;
};

// A device with a queue repeats the work that a kernel has submitted (device/step_graph.h).  So its kernels read the
// values of a step at `values`, in the device's memory, and not in the base.
struct KernelArgs : StepValues {
  std::span<const Tensor> inputs;
  std::span<const Tensor> outputs;
  std::span<const Tensor> output_gradients;  // backward only
  std::span<const Tensor> input_gradients;  // backward, and where Needs says so forward; else empty
  std::span<const Tensor> params;           // in Params() order
  std::span<const Tensor> param_gradients;  // backward only
  std::span<const Tensor> state;            // in State() order
  void* scratch = nullptr;
  void* saved = nullptr;
  bool accumulate = false;              // add to parameter gradients instead of writing them
  bool adds_input_gradient = false;     // add to input gradient 0; only where Needs says so
  const StepValues* values = nullptr;   // null where no step is trained
  const StepState* progress = nullptr;  // likewise: whether steps still change anything
  WorkerSums* worker_sums = nullptr;    // null for a single worker
};

class StepDecoder;

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual KernelNeeds Needs() const { return {}; }
  virtual void Forward(const KernelArgs& args) = 0;
  virtual void Backward(const KernelArgs& args) = 0;
  // Returns what the kernel has chosen that decides bits besides its implementation (a library's engine); "": nothing.
  // It contains neither ':' nor spaces.
  virtual std::string choice() const { return ""; }
  // Returns the layer's one-step form (step_decoder.h); null for layers that are no decoders.
  virtual StepDecoder* step_decoder() { return nullptr; }
};

struct KernelEntry {
  std::string implementation;  // "onednn", "batch_blocked", "direct"
  std::function<std::optional<KernelOffer>(const KernelRequest&)> offer;  // nullopt: cannot run it
  std::function<std::unique_ptr<Kernel>(const KernelRequest&, const KernelOffer&)> make;
};

// Divides a kernel's name in a plan, "direct" or "cudnn:eng1,eng0,eng4_k2=0", into the implementation and its choice.
struct KernelName {
  explicit KernelName(const std::string& name);

  std::string implementation, choice;
};

// Says which kernels a program has.
struct KernelChoices {
  // layer -> KernelName, from a plan; a rule chooses those of other layers.
  std::map<std::string, std::string> names;
  bool measure = false;  // KernelRequest::measure

  std::optional<KernelName> Of(const std::string& layer) const {
    const auto named = names.find(layer);
    if (named == names.end()) return std::nullopt;
    return KernelName(named->second);
  }
};

class KernelRegistry {
 public:
  static bool Add(const std::string& layer_type, DeviceKind device, KernelEntry entry);
  // Returns the kernels sorted by implementation name; empty if none runs the layer on that device.
  static const std::vector<KernelEntry>& Of(const std::string& layer_type, DeviceKind device);
};

// Returns the offer of layers that work elementwise in the form of their input.
KernelOffer FollowInput(const KernelRequest& request);
// Returns the offer of layers that need all tensors row-major.
KernelOffer AllPlain(const KernelRequest& request);
// Versions for DTRAIN_KERNEL's `offer`, for kernels that accept any shape but no fused ReLU.
std::optional<KernelOffer> OfferElementwise(const KernelRequest& request);
std::optional<KernelOffer> OfferPlain(const KernelRequest& request);

// Holds the kernels that a program inserts between those of the layers where it needs them.  It finds them by name and
// kind of device.  Every device that runs programs has all of them.
//
//   reorder  outputs[0] = inputs[0] in the form of outputs[0]; Backward: input_gradients[0] =
//            output_gradients[0], likewise
//   add      outputs[k] += inputs[k] for every k where outputs[k] has memory: the gradients of a
//            value that several kernels read
//   sum      outputs[0], one double, = all elements of inputs[0], inputs[1], ... (fp32, plain), added
//            one by one in this order: losses, and counts, which are whole and so exact
//   zero     outputs[k] = 0 for every k: the gradients of a share without samples
//   params   outputs[k] = inputs[k], a parameter, in the form of outputs[k]; Backward: input_gradients[k]
//            = output_gradients[k], or += with `accumulate`.  Only for devices whose kernels want other forms.
//
// They get no parameters, no scratch and no saved memory; only reorder and params have a Backward.
//
//   DTRAIN_INSERTED_KERNEL("add", DeviceKind::kCpu, MakeAdd);    // framework/kernels/<device>/
class InsertedKernels {
 public:
  using Maker = std::function<std::unique_ptr<Kernel>(const Device&)>;

  static bool Add(const std::string& name, DeviceKind device, Maker make);

  // `where` names the user of the kernel: "layer 'conv1'".  Throws ConfigError with `where` and the device if the
  // device lacks it.
  static std::unique_ptr<Kernel> Make(const std::string& name, const Device& device,
                                      const std::string& where);
};

}  // namespace dtrain

#define DTRAIN_KERNEL(layer_type, device, implementation, offer, make) \
  [[maybe_unused]] static const bool make##_registered =               \
      ::dtrain::KernelRegistry::Add(layer_type, device, {implementation, offer, make})

#define DTRAIN_INSERTED_KERNEL(name, device, make)       \
  [[maybe_unused]] static const bool make##_registered = \
      ::dtrain::InsertedKernels::Add(name, device, make)
