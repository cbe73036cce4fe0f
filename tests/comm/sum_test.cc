#include "framework/comm/sum.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/comm/collective_conformance.h"

namespace dtrain {
namespace {

std::vector<float> SumOf(int count, int64_t n, int64_t offset) {
  std::vector<std::vector<float>> sources;
  std::vector<const float*> pointers;
  for (int k = 0; k < count; ++k) sources.push_back(GradientOf(k, n + offset));
  for (const auto& source : sources) pointers.push_back(source.data() + offset);
  std::vector<float> to(n + 1, 42.0f);
  SumInOrder(to.data(), pointers.data(), count, n);
  EXPECT_EQ(to[n], 42.0f) << "wrote past the end";
  to.pop_back();
  return to;
}

TEST(SumInOrder, IsTheLeftToRightSumToTheBit) {
  for (const int count : {1, 2, 3, 5, 8}) {
    for (const int64_t n : {0, 1, 15, 16, 31, 32, 33, 1000}) {
      EXPECT_TRUE(SameBits(SumOf(count, n, 0), CanonicalSum(count, n))) << count << " x " << n;
    }
  }
}

TEST(SumInOrder, TakesUnalignedSources) {
  const std::vector<float> whole = CanonicalSum(3, 103);
  EXPECT_TRUE(SameBits(SumOf(3, 100, 3), {whole.begin() + 3, whole.end()}));
}

TEST(SumInOrder, MayWriteOverAnySource) {
  for (int over = 0; over < 3; ++over) {
    std::vector<std::vector<float>> sources;
    std::vector<const float*> pointers;
    for (int k = 0; k < 3; ++k) sources.push_back(GradientOf(k, 77));
    for (const auto& source : sources) pointers.push_back(source.data());
    SumInOrder(sources[over].data(), pointers.data(), 3, 77);
    EXPECT_TRUE(SameBits(sources[over], CanonicalSum(3, 77))) << "over source " << over;
  }
}

}  // namespace
}  // namespace dtrain
