#include "framework/core/isa.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

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

// oneDNN's names: SSE41, AVX, AVX2, AVX2_VNNI, AVX512_CORE..., ALL or DEFAULT.
Isa Cap() {
  const char* text = std::getenv("ONEDNN_MAX_CPU_ISA");
  if (text == nullptr) text = std::getenv("DNNL_MAX_CPU_ISA");
  const std::string_view name = text == nullptr ? "ALL" : text;
  if (name == "SSE41") return Isa::kBaseline;
  if (name == "AVX") return Isa::kAvx;
  if (name.starts_with("AVX2")) return Isa::kAvx2;
  return Isa::kAvx512;
}

}  // namespace

Isa CpuIsa() {
  static const Isa isa = std::min(Detect(), Cap());
  return isa;
}

std::string IsaName(Isa isa) {
  return std::string(NameIn({"baseline", "avx", "avx2", "avx512"}, isa));
}

}  // namespace dtrain
