// Reaches functions of _isa.cc sources, which exist once per instruction set (core/isa.h).
//
//   DTRAIN_ISA_DECLARE(void, AddOne, (float* p, int64_t count))       beside the other declarations
//   DTRAIN_ISA_SELECT(isa, AddOne)(p, count)                          the call
//
// The set comes from Device::isa, which a test may lower below CpuIsa() but never raise above it.
#pragma once

#include "framework/core/isa.h"

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
