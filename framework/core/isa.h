// Which instruction set our own hot loops use, chosen at run time, and whether there is AMX.
//
// A source whose name ends in _isa.cc is compiled once per set, each time into the namespace
// DTRAIN_ISA_NS, and DTRAIN_ISA_SELECT calls the one that a device asks for.  There is no
// -march=native anywhere: one binary serves a whole cluster.
#pragma once

#include <string>

namespace dtrain {

enum class Isa { kBaseline, kAvx, kAvx2, kAvx512 };  // kAvx2 includes FMA; kAvx512 is F+VL+DQ+BW

// The best set of this CPU, capped by ONEDNN_MAX_CPU_ISA (oneDNN's own variable, so that one
// setting caps both).  Constant during a process.
Isa CpuIsa();

std::string IsaName(Isa isa);  // "baseline", "avx", "avx2", "avx512"

// Whether this process may use AMX, the matrix unit of recent Intel CPUs, for bf16 products: the
// CPU has these and AVX-512's conversions, the instruction set is not capped below, and the kernel
// has granted the tiles, for which the first call asks.  Our own kernels need less than oneDNN's
// (onednn.h): no CPUID leaf that describes the tiles.  Constant during a process.
bool AmxAvailable();

// Why not: "the CPU has no AMX"; "" where AmxAvailable().
std::string WhyNoAmx();

}  // namespace dtrain

// Reaches functions of _isa.cc sources, which exist once per instruction set (see above).
//
//   DTRAIN_ISA_DECLARE(void, AddOne, (float* p, int64_t count))       beside the other declarations
//   DTRAIN_ISA_SELECT(isa, AddOne)(p, count)                          the call
//
// The set comes from Device::isa, which a test may lower below CpuIsa() but never raise above it.
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
