// Cast is a compressor that sends every value, rounded to 16 bits.  The rounding error stays in the residual, like the
// entries that a selector does not choose, and is added to later gradients (framework/core/short_float.h has the
// details).
//
// It chooses nothing: Select must not be called.
#pragma once

#include "framework/compress/compressor.h"
#include "framework/core/check.h"

namespace dtrain {

class Cast : public Compressor {
 public:
  explicit Cast(Wire wire) : wire_(wire) {}

  void Configure(config::Reader&, CompressConfig&) final {}
  Wire wire() const final { return wire_; }
  std::unique_ptr<Selection> Select(int64_t, double, const SelectionKey&) const final {
    DT_CHECK(false) << "a cast selects nothing";
    return nullptr;
  }
  int64_t Asked(int64_t n, double) const final { return n; }
  int64_t EntriesMost(int64_t n, double) const final { return n; }
  int passes() const final { return 2; }  // writes the sent values and the residual

 private:
  const Wire wire_;
};

}  // namespace dtrain
