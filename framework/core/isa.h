// The instruction set that this program's own hot loops use, chosen at run time, and the check for AMX.
//
// A source whose name ends in _isa.cc is compiled once per set, each time into the namespace
// DTRAIN_ISA_NS, and DTRAIN_ISA_SELECT calls the one for the device's set.  Nothing is compiled with -march=native: one
// binary serves a whole cluster.
#pragma once

#include <string>

namespace dtrain {

// KAvx2 includes FMA; kAvx512 means F, VL, DQ and BW.
enum class Isa { kBaseline, kAvx, kAvx2, kAvx512 };

// Returns the best set of this CPU, capped by ONEDNN_MAX_CPU_ISA (oneDNN's own variable, so that one setting caps
// both).  Constant during a process.
Isa CpuIsa();

std::string IsaName(Isa isa);  // "baseline", "avx", "avx2", "avx512"

// True if this process may use AMX, the matrix unit of recent Intel CPUs, for bf16 products: the CPU has AMX for bf16
// and AVX-512's bf16 conversions, ONEDNN_MAX_CPU_ISA does not cap the set below, and Linux has granted the tile
// registers, which the first call requests.  Our kernels need less than oneDNN's (onednn.h): they do not read the CPUID
// leaf that describes the tiles.  Constant during a process.
bool AmxAvailable();

// Returns the reason why not: "the CPU has no AMX with bf16"; "" if AmxAvailable().
std::string WhyNoAmx();

}  // namespace dtrain

// Declares and calls functions of _isa.cc sources, which exist once per instruction set (see above).
//
//   DTRAIN_ISA_DECLARE(void, AddOne, (float* p, int64_t count))       beside the other declarations
//   DTRAIN_ISA_SELECT(isa, AddOne)(p, count)                          the call
//
// The set is Device::isa, which a test may lower below CpuIsa() but never raise above it.
#define DTRAIN_ISA_DECLARE(result, name, parameters) \
  namespace isa_baseline {                           \
  result name parameters;                            \
  }                                                  \
  namespace isa_avx {                                \
  result name parameters;                            \
  }                                                  \
  namespace isa_avx2 {                               \
  result name parameters;                            \
  }                                                  \
  namespace isa_avx512 {                             \
  result name parameters;                            \
  }

#define DTRAIN_ISA_SELECT(isa, name)                  \
  ((isa) == ::dtrain::Isa::kAvx512 ? isa_avx512::name \
   : (isa) == ::dtrain::Isa::kAvx2 ? isa_avx2::name   \
   : (isa) == ::dtrain::Isa::kAvx  ? isa_avx::name    \
                                   : isa_baseline::name)
