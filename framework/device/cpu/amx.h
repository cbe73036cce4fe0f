// Whether this process may use AMX, the matrix unit of recent Intel CPUs, for bf16 products.
//
// Our own kernels need less than oneDNN's (onednn.h): no CPUID leaf that describes the tiles.
#pragma once

#include <string>

namespace dtrain {

// The CPU has AMX's bf16 products and AVX-512's conversions, the instruction set is not capped
// below (core/isa.h), and the kernel has granted this process the tiles: asked for at the first
// call.  Constant during a process.
bool AmxAvailable();

// Why not: "the CPU has no AMX"; "" where AmxAvailable().
std::string WhyNoAmx();

}  // namespace dtrain
