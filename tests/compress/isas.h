// Lists the instruction sets that this CPU supports.
#pragma once

#include <vector>

#include "framework/core/isa.h"

namespace dtrain {

inline std::vector<Isa> IsasHere() {
  std::vector<Isa> all;
  for (const Isa isa : {Isa::kBaseline, Isa::kAvx, Isa::kAvx2, Isa::kAvx512}) {
    if (isa <= CpuIsa()) all.push_back(isa);
  }
  return all;
}

}  // namespace dtrain
