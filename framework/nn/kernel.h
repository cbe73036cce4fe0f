// Kernel: the arithmetic of a layer on a device, for one set of shapes and formats.
//
// A layer type may have several implementations for a device.  For each call the program
// (program.cc) asks all of them for an Offer and takes the one the execution plan names, else the
// offer with the highest preference.  The rule depends on shapes, threads and instruction set only,
// never on a measurement, so that two fresh runs choose alike.
//
//   DTRAIN_KERNEL("convolution", DeviceKind::kCpu, "onednn", OfferOneDnn, MakeOneDnn);
//
// Contract of a Kernel:
//   - inputs, outputs and gradients are valid for the call only; kernels keep offsets, no
//     addresses.
//   - Forward reads inputs and params, writes outputs (and `saved`, when training).
//   - Backward reads what its Needs name, writes input gradients with `=` (never `+=`; a null data
//     pointer means nobody wants it) and parameter gradients with `=`, or `+=` when
//     `accumulate` is set.  It may destroy the output gradients.
//   - a layer with state that is frozen (Graph::Freeze) trains with the kernel of Mode::kEvaluate: it reads the state
//     and leaves it, and its Backward, which no other layer's kernel of that mode needs, writes input gradients alone.
//   - no allocation after construction; `scratch` is shared by all kernels of a net and holds
//     nothing between calls; `saved` lives from Forward to Backward of the same step.
//   - samples are independent of the position in the batch and of the other samples, so that the
//     forward result of a sample does not depend on how a batch is divided among ranks or threads; the
//     last bits do where a GPU's libraries multiply.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/device/device.h"
#include "framework/device/tensor.h"
#include "framework/nn/layer.h"

namespace dtrain {

// FloatRoom: a kernel's scratch or saved memory, cut into named pieces when the kernel is made.
//
//   FloatRoom room;
//   const int64_t gates = room.Take(batch * 3 * hidden);    // an offset, in floats
//   ... needs.scratch_bytes = room.bytes();                 // later: scratch + gates
class FloatRoom {
 public:
  // Pieces begin on cache lines.
  int64_t Take(int64_t floats) {
    const int64_t at = floats_;
    floats_ += (floats + 15) / 16 * 16;
    return at;
  }
  size_t bytes() const { return static_cast<size_t>(floats_) * sizeof(float); }

 private:
  int64_t floats_ = 0;
};

// WorkerSums: small sums over all workers in the middle of a step, for layers whose result depends
// on the samples of the others (batch_norm with `sync`).
class WorkerSums {
 public:
  virtual ~WorkerSums() = default;

  // values[i] becomes the sum of every worker's values[i], added in rank order: the same bits on
  // all.  Blocks until all have called it.  Every worker makes the same calls in the same order,
  // with as many values; one whose share of the batch is empty takes part with zeros.
  virtual void Sum(std::span<double> values) = 0;
};

enum class Mode { kTrain, kEvaluate };

// What the net asks for.
struct KernelRequest {
  const Layer* layer = nullptr;
  uint64_t layer_index = 0;   // place in the graph: keys the layer's random numbers
  std::vector<Shape> inputs;  // batch axis included; exact, a kernel serves one shape
  std::vector<Shape> outputs;
  std::vector<Format> available;  // format each input has now
  std::vector<bool> needs_input_gradient;
  bool fused_relu = false;   // apply max(0, .) to output 0 (program.h)
  Mode mode = Mode::kTrain;  // kEvaluate also of a frozen layer with state, in training
  Device device;
};

// How an implementation would run it.
struct KernelOffer {
  std::vector<Format> inputs;   // the formats it wants; the net reorders where they differ
  std::vector<Format> outputs;  // the formats it produces
  int preference = 0;           // highest wins; 0: works everywhere; below: only where it is named
};

struct KernelNeeds {
  size_t scratch_bytes = 0;
  size_t saved_bytes = 0;
  bool backward_reads_inputs = false;
  bool backward_reads_outputs = false;
  bool forward_in_place = false;   // output 0 may share input 0's memory
  bool backward_in_place = false;  // input gradient 0 may share output gradient 0's memory
};

struct KernelArgs {
  std::span<const Tensor> inputs;
  std::span<const Tensor> outputs;
  std::span<const Tensor> output_gradients;  // backward only
  std::span<const Tensor> input_gradients;   // backward only
  std::span<const Tensor> params;            // in Params() order
  std::span<const Tensor> param_gradients;   // backward only
  std::span<const Tensor> state;             // in State() order
  void* scratch = nullptr;
  void* saved = nullptr;
  bool accumulate = false;  // add to parameter gradients instead of writing them
  float loss_scale = 1;     // 1 / (terms of the global batch: samples, or words)
  uint64_t seed = 0;
  uint64_t step = 0;
  int64_t first_position = 0;         // of row 0 in the global batch
  WorkerSums* worker_sums = nullptr;  // null: this is the only worker
};

class StepDecoder;

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual KernelNeeds Needs() const { return {}; }
  virtual void Forward(const KernelArgs& args) = 0;
  virtual void Backward(const KernelArgs& args) = 0;
  // The same layer one step at a time (step_decoder.h); null where that makes no sense.
  virtual StepDecoder* step_decoder() { return nullptr; }
};

struct KernelEntry {
  std::string implementation;  // "onednn", "batch_blocked", "direct"
  std::function<std::optional<KernelOffer>(const KernelRequest&)> offer;  // nullopt: cannot
  std::function<std::unique_ptr<Kernel>(const KernelRequest&, const KernelOffer&)> make;
};

class KernelRegistry {
 public:
  static bool Add(const std::string& layer_type, DeviceKind device, KernelEntry entry);
  // By name of the implementation; none where nothing runs the layer on that device.
  static const std::vector<KernelEntry>& Of(const std::string& layer_type, DeviceKind device);
};

// For layers that work elementwise in whatever format their input has.
KernelOffer FollowInput(const KernelRequest& request);
// For layers that want everything row-major.
KernelOffer AllPlain(const KernelRequest& request);
// The same as DTRAIN_KERNEL's `offer`, for kernels that take any shape and no fused ReLU.
std::optional<KernelOffer> OfferElementwise(const KernelRequest& request);
std::optional<KernelOffer> OfferPlain(const KernelRequest& request);

// Kernels that stand between those of the layers: a program inserts them where a graph needs them,
// and finds them by name and kind of device.  Every device that runs programs has all of them.
//
//   reorder  outputs[0] = inputs[0] in the format of outputs[0]; Backward: input_gradients[0] =
//            output_gradients[0], likewise
//   add      outputs[k] += inputs[k] for every k where outputs[k] has memory: the gradients of a
//            value that several kernels read
//   sum      outputs[0], one double, = all elements of inputs[0], inputs[1], ... (fp32, plain), added
//            one by one in this order: losses, and counts, which are whole and so exact
//   zero     outputs[k] = 0 for every k: the gradients of a share without samples
//
// They get no parameters, no scratch and no saved memory; only reorder has a Backward.
//
//   DTRAIN_INSERTED_KERNEL("add", DeviceKind::kCpu, MakeAdd);    // framework/kernels/<device>/
class InsertedKernels {
 public:
  using Maker = std::function<std::unique_ptr<Kernel>(const Device&)>;

  static bool Add(const std::string& name, DeviceKind device, Maker make);

  // `where` says who needs it: "layer 'conv1'".  Throws ConfigError, which names that and the
  // device, for a device that lacks it.
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
