// Kernels that stand between those of the layers: a program inserts them where a graph needs them,
// and finds them by name and kind of device.  Every device that runs programs has all of them.
//
//   reorder  outputs[0] = inputs[0] in the format of outputs[0]; Backward: input_gradients[0] =
//            output_gradients[0], likewise
//   add      outputs[k] += inputs[k] for every k where outputs[k] has memory: the gradients of a
//            value that several kernels read
//   sum      outputs[0], one double, = all elements of inputs[0], inputs[1], ... (fp32, plain),
//   added one
//            by one in this order: losses, and counts, which are whole and so exact
//   zero     outputs[k] = 0 for every k: the gradients of a share without samples
//
// They get no parameters, no scratch and no saved memory; only reorder has a Backward.
//
//   DTRAIN_INSERTED_KERNEL("add", DeviceKind::kCpu, MakeAdd);    // framework/kernels/<device>/
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "framework/nn/kernel.h"

namespace dtrain {

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

#define DTRAIN_INSERTED_KERNEL(name, device, make)       \
  [[maybe_unused]] static const bool make##_registered = \
      ::dtrain::InsertedKernels::Add(name, device, make)
