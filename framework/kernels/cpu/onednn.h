// The little of oneDNN that is shared: one engine, one stream a thread, and primitives that run
// without allocating.  Includes oneDNN's headers, so only .cc files of kernels include this one.
//
// oneDNN 2.6 dies with SIGILL in its AMX kernels on virtual machines that report AMX but hide the
// CPUID leaf that describes its tiles (0x1D).  There this file caps oneDNN at AVX-512 before main,
// because the cap has no effect after the first primitive.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "framework/device/tensor.h"

namespace dtrain {

const dnnl::engine& OneDnnEngine();

// The shape [N, C, H, W] in `format` (plain or channels_last); any rank when plain.
dnnl::memory::desc OneDnnDesc(const Shape& shape, Format format);
// The same shape in a format that oneDNN may choose.
dnnl::memory::desc OneDnnAnyDesc(const Shape& shape);

// A primitive with its arguments bound by place; Run() takes one address for each, also for an
// empty one, which is left out of the call.
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
