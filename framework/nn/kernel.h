// Kernel: the arithmetic of a layer on a device, for one set of shapes and formats.
//
// A layer type may have several implementations for a device.  For each node the net asks all of
// them for an Offer and takes the one the execution plan names, else the offer with the highest
// preference.  The rule depends on shapes, threads and instruction set only, never on a
// measurement, so that two fresh runs choose alike.
//
//   DTRAIN_KERNEL("convolution", DeviceKind::kCpu, "onednn", OfferOneDnn, MakeOneDnn);
//
// Contract of a Kernel:
//   - inputs, outputs and gradients are valid for the call only; kernels keep offsets, no
//   addresses.
//   - Forward reads inputs and params, writes outputs (and `saved`, when training).
//   - Backward reads what its Needs name, writes input gradients with `=` (never `+=`; a null data
//     pointer means nobody wants it) and parameter gradients with `=`, or `+=` when
//     `accumulate` is set.  It may destroy the output gradients.
//   - no allocation after construction; `scratch` is shared by all kernels of a net and holds
//     nothing between calls; `saved` lives from Forward to Backward of the same step.
//   - samples are independent of the position in the batch and of the other samples, so that the
//     forward result of a sample does not depend on how a batch is divided among ranks or threads.
#pragma once

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

enum class Mode { kTrain, kEvaluate };

// What the net asks for.
struct KernelRequest {
  const Layer* layer = nullptr;
  uint64_t layer_index = 0;   // place in the graph: keys the layer's random numbers
  std::vector<Shape> inputs;  // batch axis included; exact, a kernel serves one shape
  std::vector<Shape> outputs;
  std::vector<Format> available;  // format each input has now
  std::vector<bool> needs_input_gradient;
  bool fused_relu = false;  // apply max(0, .) to output 0 (fusion.h)
  Mode mode = Mode::kTrain;
  Device device;
};

// How an implementation would run it.
struct KernelOffer {
  std::vector<Format> inputs;   // the formats it wants; the net reorders where they differ
  std::vector<Format> outputs;  // the formats it produces
  int preference = 0;           // highest wins; 0 = works everywhere
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

}  // namespace dtrain

#define DTRAIN_KERNEL(layer_type, device, implementation, offer, make) \
  [[maybe_unused]] static const bool make##_registered =               \
      ::dtrain::KernelRegistry::Add(layer_type, device, {implementation, offer, make})
