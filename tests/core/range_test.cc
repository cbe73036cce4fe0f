
#include <gtest/gtest.h>

#include "framework/core/layout.h"

namespace dtrain {
namespace {

TEST(Range, KnowsWhatItHolds) {
  const Range range{10, 20};
  EXPECT_EQ(range.size(), 10);
  EXPECT_FALSE(range.empty());
  EXPECT_TRUE((Range{5, 5}.empty()));
  EXPECT_TRUE(range.Contains({10, 20}));
  EXPECT_TRUE(range.Contains({12, 12}));
  EXPECT_FALSE(range.Contains({9, 12}));
  EXPECT_FALSE(range.Contains({12, 21}));
}

TEST(Range, EvenPartsCoverItInOrder) {
  for (const int64_t size : {0, 1, 7, 16, 1000}) {
    for (const int64_t pieces : {1, 2, 3, 7, 16}) {
      const Range range{3, 3 + size};
      int64_t end = range.begin;
      for (int64_t i = 0; i < pieces; ++i) {
        const Range part = SplitEvenly(range, pieces, i);
        EXPECT_EQ(part.begin, end);
        EXPECT_EQ(part.size(), size / pieces + (i < size % pieces ? 1 : 0));
        end = part.end;
      }
      EXPECT_EQ(end, range.end);
    }
  }
}

TEST(ArenaLayout, EndsWithItsLastEntry) {
  ArenaLayout layout;
  EXPECT_EQ(layout.size(), 0);
  layout.entries = {{"fc.weight", {2, 3}, {0, 6}}, {"fc.bias", {2}, {6, 8}}};
  EXPECT_EQ(layout.size(), 8);
}

}  // namespace
}  // namespace dtrain
