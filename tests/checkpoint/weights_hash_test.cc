#include "framework/checkpoint/checkpoint.h"

#include <gtest/gtest.h>

#include "framework/core/sha256.h"
#include "tests/checkpoint/checkpoint_sample.h"

namespace dtrain {
namespace {

std::string HashOf(const std::vector<float>& values) {
  return Sha256::Of({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
}

TEST(WeightsHash, IsOverLittleEndianFloats) {
  const ModelLayout layout = {LayoutOf({{"w", {1}}}), {}};
  const float one = 1;
  EXPECT_EQ(WeightsSha256(layout, &one, nullptr), Sha256::Of(std::string_view("\0\0\x80\x3f", 4)));
}

TEST(WeightsHash, IsInNameOrderWithTheStateAmongThem) {
  const ModelLayout layout = {LayoutOf({{"c.weight", {2}}, {"a.weight", {1, 2}}}),
                              LayoutOf({{"b.mean", {1}}})};
  const std::vector<float> weights = {5, 6, 1, 2};
  const float state = 3;
  EXPECT_EQ(WeightsSha256(layout, weights.data(), &state), HashOf({1, 2, 3, 5, 6}));
}

TEST(WeightsHash, DoesNotDependOnTheArenaOrder) {
  const ModelLayout forward = {LayoutOf({{"a", {1}}, {"b", {1}}}), {}};
  const ModelLayout backward = {LayoutOf({{"b", {1}}, {"a", {1}}}), {}};
  const std::vector<float> ab = {1, 2}, ba = {2, 1};
  EXPECT_EQ(WeightsSha256(forward, ab.data(), nullptr),
            WeightsSha256(backward, ba.data(), nullptr));
}

}  // namespace
}  // namespace dtrain
