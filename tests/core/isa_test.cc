#include "framework/core/isa.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace dtrain {
namespace {

TEST(Isa, NamesAreThoseOfThePlanFiles) {
  EXPECT_EQ(IsaName(Isa::kBaseline), "baseline");
  EXPECT_EQ(IsaName(Isa::kAvx), "avx");
  EXPECT_EQ(IsaName(Isa::kAvx2), "avx2");
  EXPECT_EQ(IsaName(Isa::kAvx512), "avx512");
}

// CpuIsa is fixed for a process, so each setting runs in a process of its own, which returns the
// instruction set as its exit code.
void ExpectCappedAt(const char* setting, Isa cap) {
  const auto exit_with_isa = [setting] {
    setenv("ONEDNN_MAX_CPU_ISA", setting, 1);
    std::exit(static_cast<int>(CpuIsa()));
  };
  const auto at_most = [cap](int status) {
    return WIFEXITED(status) && WEXITSTATUS(status) <= static_cast<int>(cap);
  };
  EXPECT_EXIT(exit_with_isa(), at_most, "");
}

TEST(IsaDeathTest, OneDnnsVariableIsTheCap) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  ExpectCappedAt("SSE41", Isa::kBaseline);
  ExpectCappedAt("AVX", Isa::kAvx);
  ExpectCappedAt("AVX2", Isa::kAvx2);
  ExpectCappedAt("AVX2_VNNI", Isa::kAvx2);
  ExpectCappedAt("ALL", Isa::kAvx512);
}

}  // namespace
}  // namespace dtrain
