// bf16 sends all values with 7 bits of fraction and fp32's exponents, rounded to nearest even, with error feedback.
#include "framework/compress/cast.h"

namespace dtrain {
namespace {

class ToBf16 : public Cast {
 public:
  ToBf16() : Cast(Wire::kBf16) {}
};

DTRAIN_COMPRESSOR(
    "bf16", ToBf16,
    "every value as a float of 16 bits (8 of exponent, 7 of fraction): half the bytes");

}  // namespace
}  // namespace dtrain
