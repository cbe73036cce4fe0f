// Cast: a compressor that sends every value, rounded to 16 bits.  What rounding leaves is kept back, as what
// a selector does not pick, and added to what comes later (framework/core/short_float.h says how exactly).
//
// It chooses nothing: Select is not for it.
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
  int passes() const final { return 2; }  // what is sent, and what is kept, are written

 private:
  const Wire wire_;
};

}  // namespace dtrain
