#include "framework/cluster/network_model.h"

#include <gtest/gtest.h>

namespace dtrain {
namespace {

// 8 Gbit/s is one byte a nanosecond.
constexpr LinkModel kPlain{.bandwidth_gbit_s = 8};
constexpr LinkModel kBucket{.bandwidth_gbit_s = 8, .bucket_bytes = 1000};
constexpr LinkModel kLine{.bandwidth_gbit_s = 8, .bucket_bytes = 1000, .line_gbit_s = 16};

TEST(TokenBucket, WithoutABucketTheRateIsConstant) {
  TokenBucket link(kPlain);
  EXPECT_EQ(link.TimeFor(500), 500);
  EXPECT_EQ(link.BytesIn(500), 500);
  link.Pass(0, 1e9);  // without a bucket, idle time saves no tokens
  EXPECT_EQ(link.TimeFor(500), 500);
}

TEST(TokenBucket, WithoutALimitTheBucketPassesAtOnce) {
  const TokenBucket link(kBucket);
  EXPECT_LE(link.TimeFor(999), 0);
  EXPECT_EQ(link.TimeFor(1500), 500);
  EXPECT_EQ(link.BytesIn(0), 1000);
  EXPECT_EQ(link.BytesIn(500), 1500);
}

TEST(TokenBucket, TheLineRateEndsWhenTheBucketIsEmpty) {
  const TokenBucket link(kLine);  // 2 t = 1000 + t at t = 1000
  EXPECT_EQ(link.TimeFor(1000), 500);
  EXPECT_EQ(link.TimeFor(2000), 1000);
  EXPECT_EQ(link.TimeFor(3000), 2000);
  EXPECT_EQ(link.BytesIn(500), 1000);
  EXPECT_EQ(link.BytesIn(2000), 3000);
}

TEST(TokenBucket, WhatPassesTakesTokensAndTimeBringsThem) {
  TokenBucket link(kLine);
  link.Pass(1000, 500);  // 500 tokens have accumulated
  EXPECT_EQ(link.TimeFor(3000), 2500);
  link.Pass(3000, 2500);  // the bucket is empty
  EXPECT_EQ(link.TimeFor(100), 100);
  link.Pass(0, 300);
  EXPECT_EQ(link.TimeFor(600), 300);
  link.Pass(0, 1e6);  // the bucket is full and stays so
  EXPECT_EQ(link.TimeFor(3000), 2000);
}

TEST(TokenBucket, EndsAreWholeNanoseconds) {
  EXPECT_EQ(WholeNanos(10.0), 10);
  EXPECT_EQ(WholeNanos(10.00001), 10);
  EXPECT_EQ(WholeNanos(10.1), 11);
}

TEST(TokenBucketDeathTest, RatesMustMakeSense) {
  EXPECT_DEATH(TokenBucket(LinkModel{.bandwidth_gbit_s = 0}), "bandwidth of 0 Gbit/s");
  EXPECT_DEATH(TokenBucket(LinkModel{.bandwidth_gbit_s = 8, .bucket_bytes = 1, .line_gbit_s = 4}),
               "line rate of 4 Gbit/s below the bandwidth of 8");
}

}  // namespace
}  // namespace dtrain
