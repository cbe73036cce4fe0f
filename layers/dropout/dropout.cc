#include "layers/dropout/dropout.h"

namespace dtrain {

void Dropout::Configure(config::Reader& reader) {
  ratio_ = reader.Number("ratio", 0.5).Min(0).Below(1).Help("share of the elements set to 0");
}

uint32_t Dropout::threshold() const { return static_cast<uint32_t>(ratio_ * 0x1p32); }

Cost Dropout::CostOf(std::span<const Shape> inputs) const {
  // A random number takes about thirty integer operations; each pass draws it once.
  const double work = 32.0 * static_cast<double>(inputs[0].count());
  return {work, work};
}

namespace {
DTRAIN_LAYER("dropout", Dropout, "sets random elements to 0 while training");
}

}  // namespace dtrain
