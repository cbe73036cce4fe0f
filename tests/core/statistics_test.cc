#include "framework/core/statistics.h"

#include <gtest/gtest.h>

namespace dtrain {
namespace {

TEST(Median, IsTheMiddleOneOrTheUpperOfTwo) {
  EXPECT_EQ(Median({}), 0);
  EXPECT_EQ(Median({7}), 7);
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 3, 2}), 3);
}

TEST(Moments, AreThoseOfASample) {
  const Moments moments = MomentsOf({2, 4, 4, 4, 5, 5, 7, 9});
  EXPECT_DOUBLE_EQ(moments.mean, 5);
  EXPECT_DOUBLE_EQ(moments.deviation * moments.deviation, 32.0 / 7);
  EXPECT_EQ(MomentsOf({3}).mean, 3);
  EXPECT_EQ(MomentsOf({3}).deviation, 0);
}

}  // namespace
}  // namespace dtrain
