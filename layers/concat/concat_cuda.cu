// Implements concat on the GPU under the name "direct".
#include "framework/kernels/cuda/loops.h"
#include "framework/nn/kernel.h"

namespace dtrain {
namespace {

int64_t LastOf(const Shape& shape) { return shape[shape.rank() - 1]; }

// Describes an input and the columns of the output that it becomes: [first, first + width).
struct Part {
  int64_t count, width, first;

  // Returns the index of the input's element i in an output whose rows have `row` columns.
  DT_DEVICE int64_t PlaceOf(int64_t i, int64_t row) const {
    return i / width * row + first + i % width;
  }
};

class ConcatCuda : public Kernel {
 public:
  explicit ConcatCuda(const KernelRequest& request)
      : queue_(QueueOf(request.device)), width_(LastOf(request.outputs[0])) {
    int64_t first = 0;
    for (const Shape& input : request.inputs) {
      parts_.push_back({input.count(), LastOf(input), first});
      first += LastOf(input);
    }
  }

  void Forward(const KernelArgs& args) override {
    float* const y = args.outputs[0].f32();
    for (size_t k = 0; k < parts_.size(); ++k) {
      const Part part = parts_[k];
      const float* const x = args.inputs[k].f32();
      const int64_t width = width_;
      ForEach(queue_,
              {"concat",
               {Reads(x, part.count), Writes(y, args.outputs[0].shape.count()).Only(part.count)}},
              part.count, [=] DT_DEVICE(int64_t i) { y[part.PlaceOf(i, width)] = x[i]; });
    }
  }

  void Backward(const KernelArgs& args) override {
    const float* const dy = args.output_gradients[0].f32();
    for (size_t k = 0; k < parts_.size(); ++k) {
      const Part part = parts_[k];
      float* const dx = args.input_gradients[k].f32();
      const int64_t width = width_;
      if (dx == nullptr) continue;
      ForEach(queue_,
              {"concat gradient",
               {Reads(dy, args.output_gradients[0].shape.count()).Only(part.count),
                Writes(dx, part.count)}},
              part.count, [=] DT_DEVICE(int64_t i) { dx[i] = dy[part.PlaceOf(i, width)]; });
    }
  }

 private:
  CudaQueue& queue_;
  const int64_t width_;
  std::vector<Part> parts_;
};

std::unique_ptr<Kernel> MakeConcatCuda(const KernelRequest& request, const KernelOffer&) {
  return std::make_unique<ConcatCuda>(request);
}

DTRAIN_KERNEL("concat", DeviceKind::kCuda, "direct", OfferPlain, MakeConcatCuda);

}  // namespace
}  // namespace dtrain
