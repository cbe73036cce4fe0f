#include "framework/bench/network/link_fit.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "framework/core/random.h"

namespace dtrain {
namespace {

constexpr int64_t kMessage = 16 << 10;

struct Link {
  double rate = 0;  // bytes per second
  double bucket = 0;
  double line = 0;
};

// Returns when message i of a stream over such a link is complete.
double ArrivalSeconds(const Link& link, int64_t bytes) {
  const auto b = static_cast<double>(bytes);
  return std::max(b / link.line, (b - link.bucket) / link.rate);
}

Arrivals Curve(const Link& link, int messages) {
  Arrivals arrivals;
  for (int64_t i = 1; i <= messages; ++i) {
    arrivals.push_back({ArrivalSeconds(link, i * kMessage), i * kMessage});
  }
  return arrivals;
}

// Segments travel in bunches of `bunch` bytes: a message that ends within one arrives at its end.
Arrivals InBunches(const Link& link, int messages, int64_t bunch) {
  Arrivals arrivals;
  for (int64_t i = 1; i <= messages; ++i) {
    const int64_t end = (i * kMessage + bunch - 1) / bunch * bunch;
    arrivals.push_back(
        {ArrivalSeconds(link, end) + 1e-6 * static_cast<double>(i % 4), i * kMessage});
  }
  return arrivals;
}

LinkFit FitOne(const Arrivals& arrivals) { return FitLink(std::span(&arrivals, 1)); }

constexpr Link kTypical[] = {
    {12e6, 125e3, 1e9},     // 100 Mbit/s, a bucket of two super-frames
    {119.5e6, 240e3, 3e9},  // 1 Gbit/s
    {1.2e9, 2.4e6, 4e9},    // 10 Gbit/s
    {60e6, 30e6, 600e6},    // a large bucket, as of a rented machine
};

TEST(LinkFit, FindsRateBucketAndLine) {
  for (const Link& link : kTypical) {
    const int messages = std::max(1024, static_cast<int>(16 * link.bucket / kMessage));
    const LinkFit fit = FitOne(Curve(link, messages));
    EXPECT_NEAR(fit.rate / link.rate, 1, 1e-6);
    EXPECT_NEAR(fit.bucket / link.bucket, 1, 1e-3);
    EXPECT_NEAR(fit.line / link.line, 1, 0.02);
  }
}

TEST(LinkFit, SeesTheBucketThroughBunchesOfSegments) {
  for (const Link& link : kTypical) {
    const int messages = std::max(1024, static_cast<int>(16 * link.bucket / kMessage));
    const LinkFit fit = FitOne(InBunches(link, messages, 64 << 10));
    EXPECT_NEAR(fit.rate / link.rate, 1, 0.01);
    EXPECT_NEAR(fit.bucket / link.bucket, 1, 0.05);
  }
}

TEST(LinkFit, ALinkWithoutABucketHasNone) {
  for (const double rate : {12e6, 1.2e9, 12e9}) {
    const LinkFit fit = FitOne(Curve({rate, 0, rate}, 4096));
    EXPECT_NEAR(fit.rate / rate, 1, 1e-6);
    EXPECT_EQ(fit.bucket, 0);
    EXPECT_EQ(fit.line, fit.rate);
  }
}

// A time stamp may be late, never early, and now and then a rank pauses for milliseconds.
TEST(LinkFit, ForgivesLateStampsAndStalls) {
  for (const Link& link : kTypical) {
    const int messages = std::max(4096, static_cast<int>(16 * link.bucket / kMessage));
    Arrivals arrivals = Curve(link, messages);
    const Random random(1, Purpose::kSelfTest);
    const double step = kMessage / link.rate;
    for (size_t i = 0; i < arrivals.size(); ++i) {
      arrivals[i].seconds += 0.3 * step * random.Uniform(i);
      if (random.Uniform(i + 100'000) < 0.01f) arrivals[i].seconds += 5 * step;
    }
    for (size_t i = arrivals.size() - 1; i > 0; --i) {  // in order, as messages are
      arrivals[i - 1].seconds = std::min(arrivals[i - 1].seconds, arrivals[i].seconds);
    }
    const LinkFit fit = FitOne(arrivals);
    EXPECT_NEAR(fit.rate / link.rate, 1, 0.005);
    EXPECT_NEAR(fit.bucket / link.bucket, 1, 0.1);
  }
}

// Once within the stream the sender paused for up to a tenth of its length.
TEST(LinkFit, OneLongPauseDoesNotBendTheRate) {
  const Link link = {12e6, 125e3, 1e9};
  Arrivals arrivals = Curve(link, 1024);
  const double pause = arrivals.back().seconds / 10;
  for (size_t i = 800; i < arrivals.size(); ++i) arrivals[i].seconds += pause;
  EXPECT_NEAR(FitOne(arrivals).rate / link.rate, 1, 0.001);
}

// The first message is late by a constant: latency, or a rank that woke up late.
TEST(LinkFit, ALateStartCostsTheBucketWhatPassesInIt) {
  const Link link = {119.5e6, 240e3, 3e9};
  Arrivals arrivals = Curve(link, 4096);
  for (Arrival& arrival : arrivals) arrival.seconds += 100e-6;
  const LinkFit fit = FitOne(arrivals);
  EXPECT_NEAR(fit.bucket, link.bucket - 100e-6 * link.rate, 1e3);
  EXPECT_NEAR(fit.line / link.line, 1, 0.02);
}

TEST(LinkFit, AStreamThatEndsWithinTheBucketSeesTheLine) {
  const LinkFit fit = FitOne(Curve({12e6, 1e9, 1e9}, 1024));
  EXPECT_NEAR(fit.rate, 1e9, 1);
  EXPECT_EQ(fit.bucket, 0);
}

TEST(LinkFit, TakesTheHighestRateAndTheBucketThatMostShow) {
  const Link link = {119.5e6, 240e3, 3e9};
  Arrivals starved = Curve(link, 1024);
  for (Arrival& arrival : starved) arrival.seconds *= 3;
  const Arrivals streams[] = {starved, Curve(link, 1024), Curve({119e6, 250e3, 2e9}, 1024)};
  const LinkFit fit = FitLink(streams);
  EXPECT_NEAR(fit.rate / link.rate, 1, 1e-6);
  EXPECT_NEAR(fit.bucket / link.bucket, 1, 0.05);
}

TEST(LinkFit, ABucketThatOnlyOneShowsIsNone) {
  const Link plain = {1.2e9, 0, 1.2e9};
  const Link lucky = {1.1e9, 3e6, 4e9};
  const Arrivals streams[] = {Curve(plain, 4096), Curve(lucky, 4096), Curve(plain, 4096)};
  EXPECT_EQ(FitLink(streams).bucket, 0);
  EXPECT_NEAR(FitLink(streams).line, 1.2e9, 1e3);
}

TEST(LinkFit, BucketsThatDisagreeAreNone) {
  const Arrivals streams[] = {Curve({1.2e9, 3e6, 4e9}, 8192), Curve({1.2e9, 6e6, 4e9}, 8192),
                              Curve({1.2e9, 12e6, 4e9}, 8192)};
  EXPECT_GT(FitOne(streams[2]).bucket, 11e6);
  EXPECT_EQ(FitLink(streams).bucket, 0);
}

TEST(LinkFitDeathTest, NeedsMessages) {
  EXPECT_DEATH(FitOne(Curve({1e6, 0, 1e6}, 7)), "a stream of 7 messages");
}

}  // namespace
}  // namespace dtrain
