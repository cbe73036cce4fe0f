// ConvolutionPass is one of a convolution's three passes by cuDNN's graph API: a graph and the engine that computes it
// (cuDNN's documentation, "Graph API").  The graph is the convolution alone ("Pre-compiled Single Operation Engines") or, of
// the forward pass, with a bias behind it ("Specialized Pre-Compiled Engines": ConvBiasAct).
//
// cuDNN lists engines, each with its settings (knobs), in the order of what its heuristics expect: mode A, then B, then
// the fallbacks.  Unless a plan names one, the first is taken that repeats its results to the bit, computes as precisely
// as asked (`tf32`), needs at most kMostWorkspace and, for a gradient in the arena, can add to it.  The rule measures nothing, so two fresh runs on the same kind of GPU with
// the same version of cuDNN choose alike.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "framework/core/error.h"
#include "framework/device/cuda/queue.h"
#include "framework/device/device.h"
#include "framework/device/tensor.h"
#include "framework/nn/height_width.h"

namespace dtrain {

struct ConvolutionProblem {
  Shape x, y;  // [images, channels, height, width]
  Shape w;     // [outputs, channels / groups, height, width]
  HeightWidth pad, stride, dilation;
  DType type = DType::kF32;               // of x, w and y; sums are in fp32
  bool tf32 = false;                      // with fp32: products may be rounded to TF32
  Format format = Format::kChannelsLast;  // of all three in memory; or plain
  bool bias = false;                      // the forward pass adds one of `type` for each output

  // True if w and its gradient are those of the arena, not copies: nothing lies between parameters there, and parts of a
  // batch add their gradients.
  bool weights_in_arena() const { return Form(format, type).plain(); }
};

// Says that cuDNN has no engine that qualifies.
class NoEngineError : public Error {
 public:
  explicit NoEngineError(const std::string& what) : Error(ExitCode::kInternal, what) {}
};

class ConvolutionPass {
 public:
  enum class Kind { kForward, kData, kWeights };

  static constexpr size_t kMostWorkspace = size_t{512} << 20;  // bytes

  // Says how an engine is chosen: `engine`, as engine() returned it, if it qualifies here; else by the rule or, with
  // `measure`, the fastest, for which all that qualify are timed once for each problem.
  struct Choice {
    std::string engine;
    bool measure = false;
  };

  // Throws NoEngineError.
  ConvolutionPass(const Device& device, const ConvolutionProblem& problem, Kind kind,
                  const Choice& choice);
  ~ConvolutionPass();
  ConvolutionPass(ConvolutionPass&&) noexcept;
  ConvolutionPass& operator=(ConvolutionPass&&) noexcept;

  // Returns the pass that adds its result, a gradient, to what the memory holds, by this pass's engine; none if that cannot
  // add, but for a gradient of weights_in_arena().
  std::optional<ConvolutionPass> Adding() const;

  // Returns the engine's number and knobs in cuDNN's words: "eng3_k2=1_k6=0".
  const std::string& engine() const;
  size_t workspace_bytes() const;

  // Submits the pass: kForward computes y of x and w, kData x's gradient of y's and w, kWeights w's gradient of y's and x.
  // `workspace` has workspace_bytes(); `bias` is the problem's, if it has one.
  void Run(void* x, void* w, void* y, void* workspace, void* bias = nullptr) const;

 private:
  struct Plan;
  ConvolutionPass(CudaQueue& queue, std::unique_ptr<Plan> plan);

  CudaQueue* queue_;
  std::unique_ptr<Plan> plan_;
};

struct ListedEngine {
  std::string name;  // as ConvolutionPass::engine()
  size_t workspace_bytes = 0;
  bool adds = false;  // of a gradient: it can add (ConvolutionPass::Adding)
};

// Returns the engine that the rule takes on a GPU that this machine need not have.  `properties` is cuDNN's JSON of it
// (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION).  For tests: what cuDNN accepts, and what its heuristics list, shows without
// a GPU.  Throws NoEngineError, also if the engine that qualifies is not found again by its name.
ListedEngine EngineByRule(const std::string& properties, const ConvolutionProblem& problem,
                          ConvolutionPass::Kind kind);

}  // namespace dtrain
