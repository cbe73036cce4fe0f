// Implements on the GPU the kernels that programs insert between layers (nn/kernel.h).
#include "framework/kernels/cuda/channel_loops.h"
#include "framework/kernels/cuda/element_types.h"
#include "framework/kernels/cuda/images.h"
#include "framework/kernels/cuda/loops.h"
#include "framework/nn/kernel.h"

namespace dtrain {
namespace {

struct Add : AnyChannel {
  DT_DEVICE float operator()(const Channel&, const float* x) const { return x[0] + x[1]; }
};

template <class T>
void AddInto(CudaQueue& queue, int64_t count, const T* x, T* sum) {
  MapElements(queue, {"add", {Reads(x, count), Updates(sum, count)}}, count, Add{},
              Operands<T, 2>{sum, x}, sum);
}

// One thread adds the numbers one by one, since nn/kernel.h fixes the order; [N] is a few hundred numbers.
void AddToSum(CudaQueue& queue, int64_t count, const float* x, bool adds, double* sum) {
  ForEach(queue, {"sum", {Reads(x, count), Stores(sum, 1, adds)}}, 1, [=] DT_DEVICE(int64_t) {
    double total = adds ? *sum : 0;
    for (int64_t i = 0; i < count; ++i) total += x[i];
    *sum = total;
  });
}

class ReorderKernel : public Kernel {
 public:
  explicit ReorderKernel(const Device& device) : queue_(QueueOf(device)) {}
  void Forward(const KernelArgs& args) override {
    Reorder(queue_, args.inputs[0], args.outputs[0]);
  }
  void Backward(const KernelArgs& args) override {
    Reorder(queue_, args.output_gradients[0], args.input_gradients[0]);
  }

 private:
  CudaQueue& queue_;
};

class AddKernel : public Kernel {
 public:
  explicit AddKernel(const Device& device) : queue_(QueueOf(device)) {}
  void Forward(const KernelArgs& args) override {
    for (size_t k = 0; k < args.outputs.size(); ++k) {
      const Tensor& sum = args.outputs[k];
      if (sum.data == nullptr) continue;
      WithElementType(sum.dtype, [&]<class T>() {
        AddInto(queue_, sum.shape.count(), args.inputs[k].as<const T>(), sum.as<T>());
      });
    }
  }
  void Backward(const KernelArgs&) override {}

 private:
  CudaQueue& queue_;
};

class SumKernel : public Kernel {
 public:
  explicit SumKernel(const Device& device) : queue_(QueueOf(device)) {}
  void Forward(const KernelArgs& args) override {
    for (size_t k = 0; k < args.inputs.size(); ++k) {
      AddToSum(queue_, args.inputs[k].shape.count(), args.inputs[k].f32(), k > 0,
               static_cast<double*>(args.outputs[0].data));
    }
  }
  void Backward(const KernelArgs&) override {}

 private:
  CudaQueue& queue_;
};

class ZeroKernel : public Kernel {
 public:
  explicit ZeroKernel(const Device& device) : queue_(QueueOf(device)) {}
  void Forward(const KernelArgs& args) override {
    for (const Tensor& output : args.outputs) {
      queue_.Zero(output.data, static_cast<size_t>(output.shape.count()) * SizeOf(output.dtype));
    }
  }
  void Backward(const KernelArgs&) override {}

 private:
  CudaQueue& queue_;
};

std::unique_ptr<Kernel> MakeReorder(const Device& device) {
  return std::make_unique<ReorderKernel>(device);
}
std::unique_ptr<Kernel> MakeAdd(const Device& device) {
  return std::make_unique<AddKernel>(device);
}
std::unique_ptr<Kernel> MakeSum(const Device& device) {
  return std::make_unique<SumKernel>(device);
}
std::unique_ptr<Kernel> MakeZero(const Device& device) {
  return std::make_unique<ZeroKernel>(device);
}

DTRAIN_INSERTED_KERNEL("reorder", DeviceKind::kCuda, MakeReorder);
DTRAIN_INSERTED_KERNEL("add", DeviceKind::kCuda, MakeAdd);
DTRAIN_INSERTED_KERNEL("sum", DeviceKind::kCuda, MakeSum);
DTRAIN_INSERTED_KERNEL("zero", DeviceKind::kCuda, MakeZero);

}  // namespace
}  // namespace dtrain
