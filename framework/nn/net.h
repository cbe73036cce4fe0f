// Net is a Graph compiled for a device.  It owns activations, never weights: every call takes the weight, gradient and
// state arenas, so that workers, snapshots and evaluation exchange weights without copying.
//
// One program is compiled per (mode, shapes of the inputs); the kMaxPrograms used last are kept.
// All share one arena: prepare the largest shapes first, and it has room for all.  A step whose shapes are prepared
// allocates nothing and touches no new page; other shapes are compiled when they first occur.
//
// Batches and arenas (arena.h) are in host memory or in the device's.  If the kernels cannot access them there, every
// call copies them (device_copies.h), unless Bring did so before.
//
// Only one thread may call a Net.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/core/time.h"
#include "framework/device/buffer.h"
#include "framework/device/device.h"
#include "framework/device/step_graph.h"
#include "framework/nn/device_copies.h"
#include "framework/nn/graph.h"
#include "framework/nn/kernel.h"

namespace dtrain {

struct Program;
struct Op;

// GradientSink receives, in backward order, the ranges of the gradient arena that are final once `written` is done.  On
// the CPU it is done already.  On a GPU the whole step has been submitted to the device before the first call, so a sink
// that waits for `written` delays no computing, only the following calls.
class GradientSink {
 public:
  virtual ~GradientSink() = default;
  virtual void Ready(Range range, const ReadyEvent& written) = 0;
};

// NetInput is one worker's share of a global batch: one tensor per Graph input, in that order, plain format.  The
// tensors' shapes give the length of this batch's sentences.
struct NetInput {
  std::span<const Tensor> fields;
  bool on_device = false;  // the fields are already in the device's memory
  int64_t samples = 0;
  int64_t first_position = 0;  // position of row 0 in the global batch
  int64_t global_samples = 0;
  int64_t global_terms = 0;  // the loss's gradient is divided by this; 0: by global_samples
  uint64_t step = 0;
  uint64_t seed = 0;                  // for dropout
  WorkerSums* worker_sums = nullptr;  // for layers that sum over workers; null: one worker
};

struct StepResult {
  bool later = false;   // the other members are not known yet (Net::Submit)
  double loss_sum = 0;  // of this share's samples
  int64_t correct = 0;  // correct samples by the model's first metric; -1: not counted
};

struct EvaluateResult {
  int64_t samples = 0;
  double loss_sum = 0;                 // summed in index order
  std::vector<int64_t> metric_counts;  // parallel to Net::metric_names()
};

// The record of one kernel call, for an observer: for `dtrain time`, and for comparing computed values.
struct KernelTiming {
  const std::string* name;
  const std::string* implementation;
  const GraphLayer* layer;  // null for a kernel that the program inserted (kernel.h)
  bool backward = false;
  Nanos nanos = 0;
  const KernelArgs* args = nullptr;  // the kernel's arguments; their memory is reused afterwards
};
using KernelObserver = std::function<void(const KernelTiming&)>;

// Holds a model's weights and state in memory that the net's kernels can access (Net::Bring).
struct BroughtModel {
  ConstArena weights, state;
};

// PartOfStep is the place of a part within a share's step (StepInParts).  Gradients and state accumulate in the
// kernels' memory: they are copied there with the first part, and back with the last.
struct PartOfStep {
  bool first = true;
  bool last = true;
};

class Net {
 public:
  static constexpr size_t kMaxPrograms = 64;

  // `kernels` maps layers to kernels, from an execution plan; a rule chooses those of other layers (kernel.h), by
  // measuring if `measure` is set, where a kernel does that.
  Net(const Graph& graph, const Device& device, std::map<std::string, std::string> kernels = {},
      bool measure = false);
  ~Net();

  // Compiles for inputs of these shapes (batch axis included), or of the graph's sample shapes, which are the largest,
  // and plans the memory.  Cheap if the program exists already.
  void Prepare(Mode mode, std::span<const Shape> inputs);
  void Prepare(Mode mode, int64_t samples);
  // Compiles the training program of this batch size.  Its kernels, with what they chose, become those of all programs that
  // are compiled later, as in a net that is given ChosenKernels(samples).
  void FollowKernelsOf(int64_t samples);

  // Runs forward and backward.  Writes the gradients, zeros for frozen layers; a part that is not the first adds to
  // them, as the previous part left them.  `sink` may be null.  A share of 0 samples writes zeros, and takes part in
  // the layers' sums over workers.
  StepResult Step(ConstArena weights, Arena gradients, Arena state, const NetInput& input,
                  GradientSink* sink, PartOfStep part = {});

  // Adds such a step, in one part, to the work of `graph`, in whose memory the result will be (ResultOf); returns at
  // once.  The gradients are announced as if they were written: the sink may only add work behind this one's.
  // REQUIRES: arenas and batch are in the device's memory, and no observer is set.
  StepResult Submit(StepGraph& graph, ConstArena weights, Arena gradients, Arena state,
                    const NetInput& input, GradientSink* sink);
  static StepResult ResultOf(const StepResults& results);
  // True if Submit can take steps of this input.
  bool CanSubmit(const NetInput& input) const {
    return device_.queue != nullptr && input.on_device && input.samples > 0 && !observer_;
  }

  // Copies a model to the device once, for several calls of Evaluate and StartDecoding; valid until the next call with
  // another model.
  BroughtModel Bring(ConstArena weights, ConstArena state);

  // Runs forward only.
  EvaluateResult Evaluate(ConstArena weights, ConstArena state, const NetInput& input);
  // Does so with the batch's own statistics, which replace `state`; frozen layers use theirs and keep them.
  EvaluateResult EstimateState(ConstArena weights, Arena state, const NetInput& input);

  // Runs the layers before the model's decoder as Evaluate does, and starts the decoder (step_decoder.h).  The target
  // and label fields may have length 1; their content does not matter.  The decoder is valid until the next call of the
  // net.  Throws ConfigError for a model without a decoder.
  StepDecoder& StartDecoding(ConstArena weights, ConstArena state, const NetInput& input);
  bool CanDecode();

  const Graph& graph() const { return graph_; }
  const Device& device() const { return device_; }
  std::vector<std::string> metric_names() const { return graph_.metric_names(); }
  // Returns the kernel of each layer (KernelName) in the training program for `samples` (which must be prepared).
  std::map<std::string, std::string> ChosenKernels(int64_t samples) const;
  // Returns the bytes of activations and of the kernels' scratch, for all prepared programs.
  size_t bytes() const { return arena_.bytes() + scratch_.bytes(); }
  void set_observer(KernelObserver observer) { observer_ = std::move(observer); }

 private:
  Program* Find(Mode mode, std::span<const Shape> inputs);
  Program& ProgramFor(Mode mode, const NetInput& input);
  EvaluateResult Evaluate(Mode mode, ConstArena weights, ConstArena state, const NetInput& input);
  void Keep(std::unique_ptr<Program> program);
  struct DeviceInputs {
    const float* weights;
    float* state;
    NetInput input;
  };
  DeviceInputs Bring(ConstArena weights, ConstArena state, const NetInput& input,
                     bool again = false);
  void Bind(const Program& program, Op& op, const DeviceInputs& device_inputs,
            KernelArgs& args) const;
  static void Give(const Op& op, KernelArgs& args);
  void Call(Op& op, bool backward, KernelArgs& args);
  void ListForms(const Op& op, const std::vector<Tensor>& of, float* arena);
  void MakeForms(Program& program, const float* weights);
  void AddForms(Kernel& params, bool accumulate);
  void RunForward(Program& program, const DeviceInputs& device_inputs, KernelArgs& args);
  void RunBackward(Program& program, Arena gradients, KernelArgs& args, bool last,
                   GradientSink* sink);
  void RunBackward(Op& op, float* gradients, KernelArgs& args);
  void WriteZeros(float* gradients, Range range);
  // Adds an announcement of a range that is final after the work submitted so far.
  void Announce(Arena gradients, Range range, GradientSink* sink);
  // Passes on the announcements that are done, or all that are left.
  void TellSink(GradientSink& sink, bool all);
  [[noreturn]] void ThrowTooLarge(const UsageError& error, Mode mode,
                                  std::span<const Shape> inputs);
  static StepValues ValuesOf(const NetInput& input);
  void AddSums(StepGraph& graph, const Program& program) const;
  void AskForSums(const Program& program);
  std::span<const double> ReadSums(const Program& program);
  void SyncWithoutSamples(Arena state, WorkerSums& sums) const;
  void WriteZeroGradients(Arena gradients, GradientSink* sink, PartOfStep part);

  const Graph& graph_;
  const Device device_;
  KernelChoices kernels_;
  std::vector<std::unique_ptr<Program>> programs_;  // least recently used first
  std::vector<Shape> shapes_;                       // of the current step
  Buffer arena_;
  Buffer scratch_;
  DeviceCopies copies_;
  struct Announcement {
    Range range;
    ReadyEvent written;
  };
  // Parameters or gradients in the arenas, and in the forms of their kernels.
  struct Forms {
    std::vector<Tensor> plain, formed;
    void Clear() {
      plain.clear();
      formed.clear();
    }
  };
  Forms forms_;
  std::vector<Announcement> announcements_;  // of the current step
  size_t announced_ = 0;                     // announcements passed to the sink
  Buffer sums_;                              // sums of the losses, and of each metric
  std::unique_ptr<StepGraph> own_steps_;     // of Step; null on a device without a queue
  std::vector<const void*> key_;             // of the step in Submit
  int64_t programs_so_far_ = 0;
  std::unique_ptr<Kernel> zero_;  // created on first use
  KernelObserver observer_;
};

// Gradient accumulation: a share of a batch is computed in consecutive parts whose gradients are added.  Activations
// then need the memory of one part only.
//
// The sum is that of the whole share up to rounding.  Random numbers are keyed by a sample's place
// in the global batch, so dropout and augmentation do not change.  Batch normalisation sees the
// parts: each has its own statistics, and updates the running ones.
//
// Returns the samples of the largest part; the others have as many or one fewer.
int64_t LargestPart(int64_t samples, int64_t parts);

// Runs the net's step in `parts` parts.  Only the last part announces gradients to `sink`.
StepResult StepInParts(Net& net, int64_t parts, ConstArena weights, Arena gradients, Arena state,
                       const NetInput& input, GradientSink* sink);

// Compiles the net for the batch sizes of StepInParts' parts of `samples` samples.
void PrepareParts(Net& net, int64_t samples, int64_t parts);

}  // namespace dtrain
