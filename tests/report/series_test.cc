#include "framework/report/series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace dtrain {
namespace {

using nlohmann::ordered_json;
using testing::ElementsAre;

Series Ramp(int rows) {
  Series series({{"step", Series::Join::kLast}, {"loss"}, {"never"}});
  for (int i = 1; i <= rows; ++i) series.Add({i, 10.0 * i, std::nullopt});
  return series;
}

TEST(Series, AShortOneIsAsItWas) {
  const ordered_json json = Ramp(3).Json(3);
  EXPECT_EQ(json["rows"], 3);
  EXPECT_EQ(json["joined"], 1);
  EXPECT_THAT(json["step"], ElementsAre(1, 2, 3));
  EXPECT_THAT(json["loss"], ElementsAre(10, 20, 30));
  EXPECT_FALSE(json.contains("never"));
}

TEST(Series, NeighboursAreJoined) {
  const ordered_json json = Ramp(7).Json(3);
  EXPECT_EQ(json["joined"], 3);
  EXPECT_THAT(json["step"], ElementsAre(3, 6, 7));
  EXPECT_THAT(json["loss"], ElementsAre(20, 50, 70));
}

TEST(Series, NeverMorePointsThanAsked) {
  for (int rows = 1; rows < 200; ++rows) {
    const ordered_json json = Ramp(rows).Json(40);
    EXPECT_LE(json["step"].size(), 40U) << rows;
    EXPECT_EQ(json["step"].back(), rows);  // the last row is always shown
  }
}

// A mean covers only the values that exist.
TEST(Series, WhatIsMissingTakesNoPart) {
  Series series({{"loss"}});
  for (const auto& value : {std::optional(2.0), std::optional<double>(), std::optional<double>(),
                            std::optional<double>()}) {
    series.Add({value});
  }
  EXPECT_EQ(series.Json(2)["loss"].dump(), "[2.0,null]");
}

}  // namespace
}  // namespace dtrain
