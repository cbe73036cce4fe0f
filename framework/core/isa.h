// Which instruction set our own hot loops use, chosen at run time.
//
// A source listed with dtrain_isa_sources (CMake) is compiled once per set, each time into the
// namespace DTRAIN_ISA_NS, and DispatchIsa picks the best one this CPU has.  There is no
// -march=native anywhere: one binary serves a whole cluster.
#pragma once

#include <string>

namespace dtrain {

enum class Isa { kBaseline, kAvx, kAvx2, kAvx512 };  // kAvx2 includes FMA; kAvx512 is F+VL+DQ+BW

// The best set of this CPU, capped by ONEDNN_MAX_CPU_ISA (oneDNN's own variable, so that one
// setting caps both).  Constant during a process.
Isa CpuIsa();

std::string IsaName(Isa isa);  // "baseline", "avx", "avx2", "avx512"

}  // namespace dtrain
