// Makes parameters in the forms that kernels want, and adds their gradients to the arena's: one kernel for all
// (nn/kernel.h, "params").
#include <algorithm>
#include <vector>

#include "framework/device/buffer.h"
#include "framework/kernels/cuda/element_types.h"
#include "framework/kernels/cuda/loops.h"
#include "framework/nn/kernel.h"

namespace dtrain {
namespace {

// A parameter [outer, inner, pixels]; its other form is [outer, pixels, inner].  Offsets are in bytes.
struct Segment {
  int64_t begin;  // number of its first element among those of all segments
  int64_t plain, formed;
  int64_t inner, pixels;
  DType type;  // of the other form
  bool turned;

  friend bool operator==(const Segment&, const Segment&) = default;

  // Returns where element i of the other form is in plain order.
  DT_DEVICE int64_t PlainAt(int64_t i) const {
    if (!turned) return i;
    const int64_t of = i / (inner * pixels), pixel = i / inner % pixels;
    return (of * inner + i % inner) * pixels + pixel;
  }
};

struct Segments {
  const Segment* all;
  int64_t count;

  DT_DEVICE const Segment& Of(int64_t element) const {
    int64_t first = 0, behind = count;
    while (behind - first > 1) {
      const int64_t middle = (first + behind) / 2;
      (all[middle].begin <= element ? first : behind) = middle;
    }
    return all[first];
  }
};

struct Span {  // memory from the first to behind the last of some tensors
  std::byte* begin;
  int64_t bytes;
};

Span SpanOf(std::span<const Tensor> tensors) {
  std::byte *first = nullptr, *behind = nullptr;
  for (const Tensor& of : tensors) {
    auto* const begin = static_cast<std::byte*>(of.data);
    std::byte* const end = begin + of.shape.count() * static_cast<int64_t>(SizeOf(of.dtype));
    first = first == nullptr ? begin : std::min(first, begin);
    behind = std::max(behind, end);
  }
  return {first, behind - first};
}

int64_t BytesOf(std::span<const Tensor> tensors) {
  int64_t bytes = 0;
  for (const Tensor& of : tensors) {
    bytes += of.shape.count() * static_cast<int64_t>(SizeOf(of.dtype));
  }
  return bytes;
}

// Holds what a pass works on.
struct FormPass {
  Segments segments;
  int64_t elements;
  Span plain, formed;
  int64_t formed_bytes;
};

DT_DEVICE inline float ElementAt(DType type, const std::byte* from, int64_t i) {
  if (type == DType::kBF16)
    return __bfloat162float(reinterpret_cast<const __nv_bfloat16*>(from)[i]);
  if (type == DType::kF16) return __half2float(reinterpret_cast<const __half*>(from)[i]);
  return reinterpret_cast<const float*>(from)[i];
}

void MakeForms(CudaQueue& queue, const FormPass& pass) {
  const auto& [segments, elements, plain, formed, formed_bytes] = pass;
  ForEach(
      queue,
      {"parameters' forms",
       {Reads(segments.all, segments.count), Reads(plain.begin, plain.bytes).Only(4 * elements, 1),
        Writes(formed.begin, formed.bytes).Only(formed_bytes, 1)}},
      elements, [pass] DT_DEVICE(int64_t element) {
        const Segment& of = pass.segments.Of(element);
        const int64_t i = element - of.begin;
        const float value =
            reinterpret_cast<const float*>(pass.plain.begin + of.plain)[of.PlainAt(i)];
        std::byte* const to = pass.formed.begin + of.formed;
        if (of.type == DType::kBF16) {
          reinterpret_cast<__nv_bfloat16*>(to)[i] = __float2bfloat16_rn(value);
        } else if (of.type == DType::kF16) {
          reinterpret_cast<__half*>(to)[i] = __float2half_rn(value);
        } else {
          reinterpret_cast<float*>(to)[i] = value;
        }
      });
}

void AddGradients(CudaQueue& queue, const FormPass& pass, bool accumulate) {
  const auto& [segments, elements, plain, formed, formed_bytes] = pass;
  ForEach(queue,
          {"gradients of forms",
           {Reads(segments.all, segments.count),
            Stores(plain.begin, plain.bytes, accumulate).Only(4 * elements, 1),
            Reads(formed.begin, formed.bytes).Only(formed_bytes, 1)}},
          elements, [pass, accumulate] DT_DEVICE(int64_t element) {
            const Segment& of = pass.segments.Of(element);
            const int64_t i = element - of.begin;
            const float value = ElementAt(of.type, pass.formed.begin + of.formed, i);
            float& sum = reinterpret_cast<float*>(pass.plain.begin + of.plain)[of.PlainAt(i)];
            sum = accumulate ? sum + value : value;
          });
}

class ParamForms : public Kernel {
 public:
  explicit ParamForms(const Device& device) : device_(device), queue_(QueueOf(device)) {}

  void Forward(const KernelArgs& args) override {
    MakeForms(queue_, forward_.PassOver(device_, args.inputs, args.outputs));
  }
  void Backward(const KernelArgs& args) override {
    AddGradients(queue_, backward_.PassOver(device_, args.input_gradients, args.output_gradients),
                 args.accumulate);
  }

 private:
  // The segments in the device's memory.  Their offsets are the same in every step.
  struct Table {
    std::vector<Segment> segments;
    Buffer memory;

    FormPass PassOver(const Device& device, std::span<const Tensor> plain,
                      std::span<const Tensor> formed) {
      const Span of_plain = SpanOf(plain), of_formed = SpanOf(formed);
      std::vector<Segment> now;
      int64_t elements = 0;
      for (size_t k = 0; k < plain.size(); ++k) {
        const Shape& shape = plain[k].shape;
        now.push_back({.begin = elements,
                       .plain = static_cast<std::byte*>(plain[k].data) - of_plain.begin,
                       .formed = static_cast<std::byte*>(formed[k].data) - of_formed.begin,
                       .inner = shape.rank() > 1 ? shape[1] : 1,
                       .pixels = shape.rank() > 2 ? shape.CountFrom(2) : 1,
                       .type = formed[k].dtype,
                       .turned = formed[k].format == Format::kChannelsLast});
        elements += shape.count();
      }
      if (now != segments) {
        const size_t bytes = now.size() * sizeof(Segment);
        if (memory.bytes() < bytes) memory = Buffer(device, bytes);
        device.queue->Upload(memory.data(), now.data(), bytes);
        device.Record().Wait();
        segments = std::move(now);
      }
      return {{static_cast<const Segment*>(memory.data()), std::ssize(segments)},
              elements,
              of_plain,
              of_formed,
              BytesOf(formed)};
    }
  };

  const Device device_;
  CudaQueue& queue_;
  Table forward_, backward_;
};

std::unique_ptr<Kernel> MakeParamForms(const Device& device) {
  return std::make_unique<ParamForms>(device);
}

DTRAIN_INSERTED_KERNEL("params", DeviceKind::kCuda, MakeParamForms);

}  // namespace
}  // namespace dtrain
