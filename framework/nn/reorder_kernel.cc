#include "framework/nn/reorder_kernel.h"

#include "framework/device/cpu/reorder.h"

namespace dtrain {

void ReorderKernel::Forward(const KernelArgs& args) {
  Reorder(args.inputs[0], args.outputs[0], device_);
}

void ReorderKernel::Backward(const KernelArgs& args) {
  Reorder(args.output_gradients[0], args.input_gradients[0], device_);
}

}  // namespace dtrain
