// Implements eltwise on the GPU under the name "direct".  It runs in whatever form the first input has.  A pass
// combines up to eight tensors, in float; a sum's backward pass writes the gradients of two inputs at a time.
#include "framework/kernels/cuda/element_types.h"
#include "framework/kernels/cuda/loops.h"
#include "framework/nn/kernel.h"
#include "layers/eltwise/eltwise.h"

namespace dtrain {
namespace {

// Combines two elements.  A NaN in either input gives NaN.
struct Join {
  EltwiseOperation operation;

  DT_DEVICE bool Wins(float a, float b) const { return b > a || (b != b && a == a); }
  DT_DEVICE float operator()(float a, float b) const {
    if (operation == EltwiseOperation::kSum) return a + b;
    if (operation == EltwiseOperation::kProduct) return a * b;
    return Wins(a, b) ? b : a;
  }
};

// Inputs that a pass adds to what earlier ones have left; null behind the last.
constexpr size_t kMore = 7;
template <class T>
struct More {
  const T* at[kMore] = {};
};

template <class T>
class EltwiseCuda : public Kernel {
 public:
  explicit EltwiseCuda(const KernelRequest& request)
      : queue_(QueueOf(request.device)),
        count_(request.outputs[0].count()),
        operation_(static_cast<const Eltwise&>(*request.layer).operation()),
        relu_(request.fused_relu),
        training_(request.mode == Mode::kTrain) {}

  // A maximum saves, for each element, the index of the input that is the largest.
  KernelNeeds Needs() const override {
    KernelNeeds needs;
    if (operation_ == EltwiseOperation::kMax && training_) {
      needs.saved_bytes = static_cast<size_t>(count_) * sizeof(uint16_t);
    }
    needs.backward_reads_inputs = operation_ == EltwiseOperation::kProduct;
    needs.backward_reads_outputs = relu_;
    needs.forward_in_place = !(training_ && needs.backward_reads_inputs);
    needs.backward_in_place = true;
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    const T* so_far = args.inputs[0].as<const T>();
    for (size_t k = 1; k < args.inputs.size(); k += kMore) {
      JoinWith(args, k, so_far);
      so_far = args.outputs[0].as<const T>();
    }
  }

  // The first input's gradient is written last, because it may overwrite dy.
  void Backward(const KernelArgs& args) override {
    const size_t inputs = args.inputs.size();
    if (operation_ == EltwiseOperation::kSum) {
      for (size_t k = inputs % 2 == 0 ? inputs - 2 : inputs - 1; k < inputs; k -= 2) {
        PassToTwo(args, k);
      }
      return;
    }
    for (size_t k = inputs; k-- > 0;) {
      if (args.input_gradients[k].data == nullptr) continue;
      operation_ == EltwiseOperation::kMax ? PassToFirst(args, k) : PassProduct(args, k);
    }
  }

  // Combines `so_far`, the result for the inputs before k, with input k and those behind it into y.
  void JoinWith(const KernelArgs& args, size_t k, const T* so_far) {
    const Join join = {operation_};
    More<T> x;
    for (size_t j = 0; j < kMore && k + j < args.inputs.size(); ++j) {
      x.at[j] = args.inputs[k + j].as<const T>();
    }
    const bool relu = relu_ && k + kMore >= args.inputs.size();
    T* const y = args.outputs[0].as<T>();
    const bool saves = operation_ == EltwiseOperation::kMax && training_;
    uint16_t* const first = saves ? static_cast<uint16_t*>(args.saved) : nullptr;
    const auto place = static_cast<uint16_t>(k);
    ForEach(queue_,
            {"eltwise",
             {Reads(so_far, count_), Reads(x.at[0], count_), Reads(x.at[1], count_),
              Reads(x.at[2], count_), Reads(x.at[3], count_), Reads(x.at[4], count_),
              Reads(x.at[5], count_), Reads(x.at[6], count_), Writes(y, count_),
              Writes(first, count_)}},
            count_, [=] DT_DEVICE(int64_t i) {
              auto result = static_cast<float>(so_far[i]);
              if (first != nullptr && place == 1) first[i] = 0;
              for (size_t j = 0; j < kMore && x.at[j] != nullptr; ++j) {
                const auto next = static_cast<float>(x.at[j][i]);
                if (first != nullptr && join.Wins(result, next)) {
                  first[i] = static_cast<uint16_t>(place + j);
                }
                result = join(result, next);
              }
              y[i] = static_cast<T>(relu && result < 0 ? 0 : result);
            });
  }

  // Writes the gradients of inputs k and k + 1 of a sum; either may be missing.
  void PassToTwo(const KernelArgs& args, size_t k) {
    const OpenGradient<T> gradient = GradientOf(args);
    T* const da = args.input_gradients[k].as<T>();
    T* const db = k + 1 < args.inputs.size() ? args.input_gradients[k + 1].as<T>() : nullptr;
    if (da == nullptr && db == nullptr) return;
    ForEach(queue_,
            {"eltwise sum gradient",
             {Reads(gradient.y, count_), Reads(gradient.dy, count_), Writes(da, count_),
              Writes(db, count_)}},
            count_, [=] DT_DEVICE(int64_t i) {
              const T dx = static_cast<T>(gradient.At(i));
              if (da != nullptr) da[i] = dx;
              if (db != nullptr) db[i] = dx;
            });
  }

  void PassToFirst(const KernelArgs& args, size_t k) {
    const OpenGradient<T> gradient = GradientOf(args);
    const uint16_t* const first = static_cast<const uint16_t*>(args.saved);
    const auto place = static_cast<uint16_t>(k);
    T* const dx = args.input_gradients[k].as<T>();
    ForEach(queue_,
            {"eltwise max gradient",
             {Reads(first, count_), Reads(gradient.y, count_), Reads(gradient.dy, count_),
              Writes(dx, count_)}},
            count_, [=] DT_DEVICE(int64_t i) {
              dx[i] = static_cast<T>(first[i] == place ? gradient.At(i) : 0);
            });
  }

  void PassProduct(const KernelArgs& args, size_t k) {
    const OpenGradient<T> gradient = GradientOf(args);
    T* const dx = args.input_gradients[k].as<T>();
    bool fresh = true;
    for (size_t other = 0; other < args.inputs.size(); ++other) {
      if (other == k) continue;
      const T* const x = args.inputs[other].as<const T>();
      ForEach(queue_,
              {"eltwise product gradient",
               {Reads(fresh ? gradient.y : nullptr, count_),
                Reads(fresh ? gradient.dy : nullptr, count_), Reads(x, count_),
                fresh ? Writes(dx, count_) : Updates(dx, count_)}},
              count_, [=] DT_DEVICE(int64_t i) {
                const float so_far = fresh ? gradient.At(i) : static_cast<float>(dx[i]);
                dx[i] = static_cast<T>(so_far * static_cast<float>(x[i]));
              });
      fresh = false;
    }
  }

 private:
  OpenGradient<T> GradientOf(const KernelArgs& args) const {
    return {relu_ ? args.outputs[0].as<const T>() : nullptr,
            args.output_gradients[0].as<const T>()};
  }

  CudaQueue& queue_;
  const int64_t count_;
  const EltwiseOperation operation_;
  const bool relu_;
  const bool training_;
};

std::unique_ptr<Kernel> MakeEltwiseCuda(const KernelRequest& request, const KernelOffer& offer) {
  return WithElementType(offer.inputs[0].dtype, [&]<class T>() -> std::unique_ptr<Kernel> {
    return std::make_unique<EltwiseCuda<T>>(request);
  });
}

DTRAIN_KERNEL("eltwise", DeviceKind::kCuda, "direct", FollowInput, MakeEltwiseCuda);

}  // namespace
}  // namespace dtrain
