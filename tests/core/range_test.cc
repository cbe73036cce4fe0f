
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

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
    for (const int64_t parts : {1, 2, 3, 7, 16}) {
      const Range range{3, 3 + size};
      int64_t end = range.begin;
      for (int64_t i = 0; i < parts; ++i) {
        const Range part = SplitEvenly(range, parts, i);
        EXPECT_EQ(part.begin, end);
        EXPECT_EQ(part.size(), size / parts + (i < size % parts ? 1 : 0));
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

ArenaLayout FourParameters() {
  ArenaLayout layout;
  for (const auto& [begin, end, factor] :
       {std::tuple{0, 4, 1.0}, {4, 6, 0.0}, {6, 7, 0.0}, {7, 9, 2.0}}) {
    layout.entries.push_back({.name = "p", .range = {begin, end}, .lr_factor = factor});
  }
  return layout;
}

TEST(ArenaLayout, IsCutWhereFactorsChange) {
  const ArenaLayout layout = FourParameters();
  const auto parts = [&](Range range) {
    std::string text;
    ForEachFactor(layout, range, [&](Range part, double factor) {
      text += fmt::format("{}-{} {}; ", part.begin, part.end, factor);
    });
    return text;
  };
  EXPECT_EQ(parts({0, 9}), "0-4 1; 4-7 0; 7-9 2; ");
  EXPECT_EQ(parts({2, 8}), "2-4 1; 4-7 0; 7-8 2; ");
  EXPECT_EQ(parts({5, 7}), "5-7 0; ");
  EXPECT_EQ(parts({1, 2}), "1-2 1; ");
  EXPECT_EQ(parts({4, 4}), "");
}

TEST(ArenaLayout, WhatIsFrozenIsCopied) {
  const std::vector<float> from = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  std::vector<float> to(9);
  CopyFrozen(FourParameters(), from.data(), to.data());
  EXPECT_EQ(to, (std::vector<float>{0, 0, 0, 0, 5, 6, 7, 0, 0}));
}

}  // namespace
}  // namespace dtrain
