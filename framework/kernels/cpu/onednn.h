// Gives shared access to oneDNN: one engine, one stream per thread, and primitives that run without allocating.
// Includes oneDNN's headers, so only .cc files of kernels include this one.
//
// oneDNN 2.6 dies with SIGILL in its AMX kernels on virtual machines that report AMX but hide the
// CPUID leaf that describes its tiles (0x1D).  On such machines onednn.cc limits oneDNN to AVX-512 before main starts,
// because the limit has no effect after the first primitive is created.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "framework/device/tensor.h"

namespace dtrain {

const dnnl::engine& OneDnnEngine();

// Returns the descriptor of an fp32 tensor in `format`: plain (any rank) or channels_last ([N, C, H, W] only).
dnnl::memory::desc OneDnnDesc(const Shape& shape, Format format);
// Returns a descriptor of the shape that lets oneDNN choose the format.
dnnl::memory::desc OneDnnAnyDesc(const Shape& shape);

// Wraps a primitive whose arguments are bound by position.  Run() takes one address per argument, also for one of size
// 0, which it does not pass on to oneDNN.
class OneDnnOp {
 public:
  struct Argument {
    int name;  // DNNL_ARG_SRC, ...
    dnnl::memory::desc desc;
  };

  OneDnnOp() = default;
  OneDnnOp(const dnnl::primitive& primitive, const std::vector<Argument>& arguments);

  // addresses[i] belongs to arguments[i].
  void Run(std::initializer_list<const void*> addresses);
  explicit operator bool() const { return !arguments_.empty(); }

 private:
  dnnl::primitive primitive_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

}  // namespace dtrain
