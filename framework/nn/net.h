// Net: a Graph compiled for a device.  It owns activations, never weights: every call is given the
// weight, gradient and state arenas, so that workers, snapshots and evaluation swap weights without
// copying.
//
// One program is compiled per (mode, shapes of the inputs); the kMaxPrograms used last are kept.
// All share one arena: who prepares for the largest shapes first has memory for all.  A step whose
// shapes are prepared allocates nothing and touches no fresh page; other shapes are compiled when
// they come.
//
// Batches and arenas (arena.h) lie in the machine's memory or in the device's.  What is not where the
// kernels reach it is copied with every call (device_copies.h), unless it was brought before.
//
// One thread calls a Net.
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
#include "framework/nn/device_copies.h"
#include "framework/nn/graph.h"
#include "framework/nn/kernel.h"

namespace dtrain {

struct Program;
struct Op;

// GradientSink is told, in backward order, which part of the gradient arena is final as soon as `written` has come
// to pass.  Where that has not yet, the device has been asked for the whole step: who waits holds up
// nothing but the announcements behind.
class GradientSink {
 public:
  virtual ~GradientSink() = default;
  virtual void Ready(Range range, const ReadyEvent& written) = 0;
};

// NetInput is a share of a global batch: one tensor per Graph input, in that order, plain format.  The tensors'
// shapes say how long the sentences of this batch are.
struct NetInput {
  std::span<const Tensor> fields;
  bool on_device = false;  // the fields are written, in the memory of the net's device
  int64_t samples = 0;
  int64_t first_position = 0;  // of row 0 in the global batch
  int64_t global_samples = 0;
  int64_t global_terms = 0;  // the loss gradient is scaled by 1 / this; 0: by 1 / global_samples
  uint64_t step = 0;
  uint64_t seed = 0;                  // for dropout
  WorkerSums* worker_sums = nullptr;  // for layers that sync; null: one worker
};

struct StepResult {
  double loss_sum = 0;  // over the samples of this share
  int64_t correct = 0;  // of them, by the model's first metric; -1: nobody counts
};

struct EvaluateResult {
  int64_t samples = 0;
  double loss_sum = 0;                 // summed in index order
  std::vector<int64_t> metric_counts;  // parallel to Net::metric_names()
};

// An observer is told about every kernel call: for `dtrain time`, and for comparing what a net computes.
struct KernelTiming {
  const std::string* name;
  const std::string* implementation;
  const GraphLayer* layer;  // null for a kernel that the program inserted (kernel.h)
  bool backward = false;
  Nanos nanos = 0;
  const KernelArgs* args = nullptr;  // what the kernel was given; its memory is soon used again
};
using KernelObserver = std::function<void(const KernelTiming&)>;

// The arenas of a brought model lie where a net's kernels reach them.
struct BroughtModel {
  ConstArena weights, state;
};

// PartOfStep says which part of a share's step it is (StepInParts).  Gradients, and the state, are added up where the
// kernels are: brought with the first part, and given back with the last.
struct PartOfStep {
  bool first = true;
  bool last = true;
};

class Net {
 public:
  static constexpr size_t kMaxPrograms = 64;

  // `kernels`: layer -> implementation, from an execution plan; others are chosen by rule.
  Net(const Graph& graph, const Device& device, std::map<std::string, std::string> kernels = {});
  ~Net();

  // Compiles for inputs of these shapes (batch axis included), or of the graph's sample shapes -
  // the largest that come - and plans the memory.  Cheap when already there.
  void Prepare(Mode mode, std::span<const Shape> inputs);
  void Prepare(Mode mode, int64_t samples);

  // Goes forward and backward.  Writes the gradients, zeros for frozen layers; a part that is not the first adds to
  // them, as the one before left them.  `sink` may be null.  A share of 0 samples writes zeros, and takes part in what
  // the layers sum over the workers.
  StepResult Step(ConstArena weights, Arena gradients, Arena state, const NetInput& input,
                  GradientSink* sink, PartOfStep part = {});

  // Copies a model once for several calls of Evaluate and StartDecoding: valid until the net is given another one.
  BroughtModel Bring(ConstArena weights, ConstArena state);

  // Goes forward only.
  EvaluateResult Evaluate(ConstArena weights, ConstArena state, const NetInput& input);

  // Runs what comes before the model's decoder as Evaluate does, and starts that (step_decoder.h).
  // The target and label fields may have length 1; what they hold does not matter.  The decoder
  // lives until the net does something else.  Throws ConfigError for a model without one.
  StepDecoder& StartDecoding(ConstArena weights, ConstArena state, const NetInput& input);
  bool CanDecode();

  const Graph& graph() const { return graph_; }
  const Device& device() const { return device_; }
  std::vector<std::string> metric_names() const { return graph_.metric_names(); }
  // Returns layer -> implementation of a training program for `samples` (prepared).
  std::map<std::string, std::string> ChosenKernels(int64_t samples) const;
  // Counts what lies between the layers, and the kernels' scratch, for all that is prepared.
  size_t bytes() const { return arena_.bytes() + scratch_.bytes(); }
  void set_observer(KernelObserver observer) { observer_ = std::move(observer); }

 private:
  Program* Find(Mode mode, std::span<const Shape> inputs);
  Program& ProgramFor(Mode mode, const NetInput& input);
  void Keep(std::unique_ptr<Program> program);
  struct Here {
    const float* weights;
    float* state;
    NetInput input;
  };
  Here Bring(ConstArena weights, ConstArena state, const NetInput& input, bool again = false);
  void Bind(const Program& program, Op& op, const Here& here, KernelArgs& args) const;
  static void Give(const Op& op, KernelArgs& args);
  void Call(Op& op, bool backward, KernelArgs& args);
  void RunForward(Program& program, const Here& here, KernelArgs& args);
  void RunBackward(Program& program, Arena gradients, KernelArgs& args, bool last,
                   GradientSink* sink);
  void RunBackward(Op& op, float* gradients, KernelArgs& args);
  void WriteZeros(float* gradients, Range range);
  // Makes an announcement behind what the device has been asked for.
  void Announce(Arena gradients, Range range, GradientSink* sink);
  // Passes on the announcements whose time has come, or all that are left.
  void TellSink(GradientSink& sink, bool all);
  [[noreturn]] void ThrowTooLarge(const UsageError& error, Mode mode,
                                  std::span<const Shape> inputs);
  void AskForSums(const Program& program);
  std::span<const double> ReadSums(const Program& program);
  void SyncWithoutSamples(Arena state, WorkerSums& sums) const;
  void WriteZeroGradients(Arena gradients, GradientSink* sink, PartOfStep part);

  const Graph& graph_;
  const Device device_;
  const std::map<std::string, std::string> kernels_;
  std::vector<std::unique_ptr<Program>> programs_;  // the one used last is the last
  std::vector<Shape> shapes_;                       // of the step at hand
  Buffer arena_;
  Buffer scratch_;
  DeviceCopies copies_;
  struct Announcement {
    Range range;
    ReadyEvent written;
  };
  std::vector<Announcement> announcements_;  // of the step at hand
  size_t told_ = 0;                          // of them, to the sink
  Buffer sums_;                              // of the losses, and of each metric
  std::unique_ptr<Kernel> zero_;             // made when first needed
  KernelObserver observer_;
};

// Gradient accumulation: a share of a batch computed in parts, one behind the other, whose
// gradients add up to the share's.  Activations then need the memory of one part.
//
// The sum is that of the whole share up to rounding.  Random numbers are keyed by a sample's place
// in the global batch, so dropout and augmentation do not change.  Batch normalisation sees the
// parts: each has statistics of its own, and moves the running ones.
//
// Returns the samples of the largest part; the others have as many or one less.
int64_t LargestPart(int64_t samples, int64_t parts);

// Does the net's step in `parts` parts.  Gradients are announced to `sink` with the last one only.
StepResult StepInParts(Net& net, int64_t parts, ConstArena weights, Arena gradients, Arena state,
                       const NetInput& input, GradientSink* sink);

// Compiles the net for the batch sizes that StepInParts gives it: the parts of `samples` samples.
void PrepareParts(Net& net, int64_t samples, int64_t parts);

}  // namespace dtrain
