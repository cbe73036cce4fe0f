// Implements on the CPU the kernels that programs insert between layers (nn/kernel.h).
#include "framework/nn/kernel.h"

#include <algorithm>

#include "framework/kernels/cpu/loops.h"
#include "framework/kernels/cpu/reorder.h"

namespace dtrain {
namespace {

class ReorderKernel : public Kernel {
 public:
  explicit ReorderKernel(const Device& device) : device_(device) {}

  void Forward(const KernelArgs& args) override {
    Reorder(args.inputs[0], args.outputs[0], device_);
  }

  void Backward(const KernelArgs& args) override {
    Reorder(args.output_gradients[0], args.input_gradients[0], device_);
  }

 private:
  const Device device_;
};

class AddKernel : public Kernel {
 public:
  explicit AddKernel(const Device& device) : device_(device) {}

  void Forward(const KernelArgs& args) override {
    for (size_t k = 0; k < args.outputs.size(); ++k) {
      const Tensor& sum = args.outputs[k];
      if (sum.data == nullptr) continue;
      AddInto(device_, StoredCount(sum.shape, sum.format), args.inputs[k].f32(), sum.f32());
    }
  }

  void Backward(const KernelArgs&) override {}

 private:
  const Device device_;
};

class SumKernel : public Kernel {
 public:
  void Forward(const KernelArgs& args) override {
    double sum = 0;
    for (const Tensor& input : args.inputs) {
      for (int64_t i = 0; i < input.shape.count(); ++i) sum += input.f32()[i];
    }
    *static_cast<double*>(args.outputs[0].data) = sum;
  }

  void Backward(const KernelArgs&) override {}
};

class ZeroKernel : public Kernel {
 public:
  void Forward(const KernelArgs& args) override {
    for (const Tensor& output : args.outputs) {
      std::fill_n(output.f32(), StoredCount(output.shape, output.format), 0.0f);
    }
  }

  void Backward(const KernelArgs&) override {}
};

std::unique_ptr<Kernel> MakeReorder(const Device& device) {
  return std::make_unique<ReorderKernel>(device);
}
std::unique_ptr<Kernel> MakeAdd(const Device& device) {
  return std::make_unique<AddKernel>(device);
}
std::unique_ptr<Kernel> MakeSum(const Device&) { return std::make_unique<SumKernel>(); }
std::unique_ptr<Kernel> MakeZero(const Device&) { return std::make_unique<ZeroKernel>(); }

DTRAIN_INSERTED_KERNEL("reorder", DeviceKind::kCpu, MakeReorder);
DTRAIN_INSERTED_KERNEL("add", DeviceKind::kCpu, MakeAdd);
DTRAIN_INSERTED_KERNEL("sum", DeviceKind::kCpu, MakeSum);
DTRAIN_INSERTED_KERNEL("zero", DeviceKind::kCpu, MakeZero);

}  // namespace
}  // namespace dtrain
