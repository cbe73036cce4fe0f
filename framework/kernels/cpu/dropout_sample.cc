#include "framework/core/random.h"
#include "framework/kernels/cpu/dropout_loops.h"

namespace dtrain {

DropoutSample SampleOf(const Random& random, double ratio) {
  const auto key = random.key(), high = random.counter_high();
  return {{key[0], key[1]},
          {high[0], high[1]},
          static_cast<uint32_t>(ratio * 0x1p32),
          static_cast<float>(1 / (1 - ratio))};
}

}  // namespace dtrain
