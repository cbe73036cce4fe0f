// fp16 sends all values in half precision, rounded to nearest even, with error feedback.  A value beyond 65504 is sent
// as 65504, and the rest of it later.
#include "framework/compress/cast.h"

namespace dtrain {
namespace {

class ToFp16 : public Cast {
 public:
  ToFp16() : Cast(Wire::kFp16) {}
};

DTRAIN_COMPRESSOR(
    "fp16", ToFp16,
    "every value as a float of 16 bits (5 of exponent, 10 of fraction): half the bytes");

}  // namespace
}  // namespace dtrain
