#include "framework/core/isa.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "framework/core/text.h"

namespace dtrain {
namespace {

Isa Detect() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw")) {
    return Isa::kAvx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Isa::kAvx2;
  if (__builtin_cpu_supports("avx")) return Isa::kAvx;
  return Isa::kBaseline;
}

// Reads oneDNN's names: SSE41, AVX, AVX2, AVX2_VNNI, AVX512_CORE..., ALL or DEFAULT.
Isa Cap() {
  const char* text = std::getenv("ONEDNN_MAX_CPU_ISA");
  if (text == nullptr) text = std::getenv("DNNL_MAX_CPU_ISA");
  const std::string_view name = text == nullptr ? "ALL" : text;
  if (name == "SSE41") return Isa::kBaseline;
  if (name == "AVX") return Isa::kAvx;
  if (name.starts_with("AVX2")) return Isa::kAvx2;
  return Isa::kAvx512;
}

#if defined(__x86_64__) && defined(__linux__)

// CPUID leaf 7 reports these: EDX bit 22 is amx_bf16, bit 24 amx_tile; EAX bit 5 of subleaf 1 is avx512_bf16.
bool CpuHasAmx() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  if ((d >> 22 & 1) == 0 || (d >> 24 & 1) == 0) return false;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 5 & 1) != 0;
}

// Linux saves the tile registers of a process only after it has requested permission.
bool KernelGrantsTiles() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

std::string Reason() {
  if (!CpuHasAmx()) return "the CPU has no AMX with bf16";
  if (CpuIsa() != Isa::kAvx512) return "the instruction set is limited to " + IsaName(CpuIsa());
  if (!KernelGrantsTiles()) return "the operating system does not grant AMX's tiles (Linux 5.16)";
  return "";
}

#else

std::string Reason() { return "this is no x86-64 Linux"; }

#endif

const std::string& KnownReason() {
  static const std::string reason = Reason();
  return reason;
}

}  // namespace

Isa CpuIsa() {
  static const Isa isa = std::min(Detect(), Cap());
  return isa;
}

std::string IsaName(Isa isa) {
  return std::string(NameIn({"baseline", "avx", "avx2", "avx512"}, isa));
}

bool AmxAvailable() { return KnownReason().empty(); }

std::string WhyNoAmx() { return KnownReason(); }

}  // namespace dtrain
