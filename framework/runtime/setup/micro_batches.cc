#include "framework/runtime/setup/micro_batches.h"

#include <vector>

namespace dtrain {
namespace {

Range PartOf(int64_t samples, int64_t parts, int64_t part) {
  return SplitEvenly({0, samples}, static_cast<int>(parts), static_cast<int>(part));
}

// Rows [rows.begin, rows.end) of a batch field, in place.
Tensor RowsOf(const Tensor& field, Range rows) {
  Tensor part = field;
  const int64_t row_bytes = field.shape.CountFrom(1) * static_cast<int64_t>(SizeOf(field.dtype));
  part.data = static_cast<std::byte*>(field.data) + rows.begin * row_bytes;
  part.shape = field.shape.WithBatch(rows.size());
  return part;
}

}  // namespace

int64_t LargestPart(int64_t samples, int64_t parts) { return PartOf(samples, parts, 0).size(); }

StepResult StepInParts(Net& net, int64_t parts, const float* weights, float* gradients,
                       float* state, const NetInput& input, GradientSink* sink) {
  if (parts == 1) return net.Step(weights, gradients, state, input, sink);
  StepResult sum;
  std::vector<Tensor> fields(input.fields.size());
  for (int64_t part = 0; part < parts; ++part) {
    const Range rows = PartOf(input.samples, parts, part);
    for (size_t f = 0; f < fields.size(); ++f) fields[f] = RowsOf(input.fields[f], rows);
    NetInput micro = input;
    micro.fields = fields;
    micro.samples = rows.size();
    micro.first_position = input.first_position + rows.begin;
    const bool last = part + 1 == parts;
    sum.loss_sum +=
        net.Step(weights, gradients, state, micro, last ? sink : nullptr, part > 0).loss_sum;
  }
  return sum;
}

void PrepareParts(Net& net, int64_t samples, int64_t parts) {
  for (int64_t part = 0; part < parts; ++part) {
    net.Prepare(Mode::kTrain, PartOf(samples, parts, part).size());
  }
}

}  // namespace dtrain
