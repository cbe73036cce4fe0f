#include "framework/device/cpu/amx.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "framework/core/isa.h"

namespace dtrain {
namespace {

#if defined(__x86_64__) && defined(__linux__)

// Leaf 7: EDX bits 22 (amx_bf16) and 24 (amx_tile); its subleaf 1: EAX bit 5 (avx512_bf16).
bool CpuHasAmx() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  if ((d >> 22 & 1) == 0 || (d >> 24 & 1) == 0) return false;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 5 & 1) != 0;
}

// Tile registers are memory that the kernel keeps for a process only where it asks for them.
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

bool AmxAvailable() { return KnownReason().empty(); }

std::string WhyNoAmx() { return KnownReason(); }

}  // namespace dtrain
