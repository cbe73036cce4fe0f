#include "framework/core/text.h"

#include <gtest/gtest.h>

#include <cmath>

namespace dtrain {
namespace {

TEST(Text, Join) {
  EXPECT_EQ(Join({}), "");
  EXPECT_EQ(Join({"a"}), "a");
  EXPECT_EQ(Join({"a", "b", "c"}), "a, b, c");
  EXPECT_EQ(Join({"a", "b"}, " and "), "a and b");
}

TEST(Text, EditDistance) {
  EXPECT_EQ(EditDistance("", ""), 0);
  EXPECT_EQ(EditDistance("", "abc"), 3);
  EXPECT_EQ(EditDistance("abc", ""), 3);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
  EXPECT_EQ(EditDistance("stalness", "staleness"), 1);
  EXPECT_EQ(EditDistance("same", "same"), 0);
}

TEST(Text, NearestName) {
  EXPECT_EQ(NearestName("momentun", {"lr", "momentum", "name"}), "momentum");
  EXPECT_EQ(NearestName("zebra", {"lr", "momentum", "name"}), "");
  EXPECT_EQ(NearestName("lr", {}), "");
  EXPECT_EQ(NearestName("relu", {"relu6", "relu"}), "relu");
}

TEST(Text, SuggestName) {
  EXPECT_EQ(SuggestName("rellu", {"conv", "relu"}), "did you mean 'relu'?  allowed: conv, relu");
  EXPECT_EQ(SuggestName("zzzzzz", {"conv", "relu"}), "allowed: conv, relu");
}

TEST(Text, HumanBytes) {
  EXPECT_EQ(HumanBytes(0), "0 B");
  EXPECT_EQ(HumanBytes(999), "999 B");
  EXPECT_EQ(HumanBytes(1000), "1.0 kB");
  EXPECT_EQ(HumanBytes(1234567), "1.2 MB");
  EXPECT_EQ(HumanBytes(64e9), "64.0 GB");
  EXPECT_EQ(HumanBytes(5e15), "5000.0 TB");
}

TEST(Text, HumanSeconds) {
  EXPECT_EQ(HumanSeconds(3.2), "3.2 s");
  EXPECT_EQ(HumanSeconds(65), "1:05");
  EXPECT_EQ(HumanSeconds(3725), "1:02:05");
  EXPECT_EQ(HumanSeconds(3599.6), "1:00:00");
  EXPECT_EQ(HumanSeconds(100 * 3600), "100:00:00");
  EXPECT_EQ(HumanSeconds(1e20), "27777777777777776:46:40") << "more than integers have a place for";
  EXPECT_EQ(HumanSeconds(INFINITY), "inf s");
  EXPECT_EQ(HumanSeconds(NAN), "nan s");
}

TEST(Text, TimeLeftSaysNothingThatNobodyCanWaitFor) {
  EXPECT_EQ(TimeLeft(0), "0.0 s left");
  EXPECT_EQ(TimeLeft(65), "1:05 left");
  EXPECT_EQ(TimeLeft(1000 * 3600), "1000:00:00 left");
  for (const double seconds : {-1.0, 4e7, 1e20, 1e300, double{INFINITY}, double{NAN}}) {
    EXPECT_EQ(TimeLeft(seconds), "") << seconds;
  }
}

TEST(Text, Hex) {
  const uint8_t bytes[] = {0x00, 0x0f, 0xa5, 0xff};
  EXPECT_EQ(Hex(bytes, 4), "000fa5ff");
  EXPECT_EQ(Hex(bytes, 0), "");
}

}  // namespace
}  // namespace dtrain
