#include "framework/solver/schedule.h"

#include <gmock/gmock.h>

#include <cmath>
#include <numbers>

#include "framework/core/error.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

using testing::HasSubstr;

Schedule Read(const std::string& yaml) {
  config::Document document = config::Document::FromText("schedule: " + yaml, "test.yaml");
  Schedule schedule = ReadSchedule(document.root().Section("schedule"));
  document.Finish();
  return schedule;
}

std::string ErrorsOf(const std::string& yaml) {
  return WhatOf<ConfigError>([&] { Read(yaml); });
}

TEST(Schedule, ConstantIsTheDefault) {
  EXPECT_EQ(Read("{}")({3, 10}), 1);
  EXPECT_EQ(Read("constant")({9.99, 10}), 1);
}

TEST(Schedule, StepAtEpochsIsExactAtTheBoundary) {
  for (const char* name : {"step", "multistep"}) {
    const Schedule schedule = Read("{name: " + std::string(name) + ", at: [6, 8], factor: 0.1}");
    EXPECT_EQ(schedule({0, 10}), 1);
    EXPECT_EQ(schedule({5.999, 10}), 1);
    EXPECT_DOUBLE_EQ(schedule({6, 10}), 0.1);
    EXPECT_DOUBLE_EQ(schedule({7.999, 10}), 0.1);
    EXPECT_DOUBLE_EQ(schedule({8, 10}), 0.01);
  }
}

TEST(Schedule, StepEveryFewEpochs) {
  const Schedule schedule = Read("{name: step, every: 2.5, factor: 0.5}");
  EXPECT_EQ(schedule({2.4, 10}), 1);
  EXPECT_EQ(schedule({2.5, 10}), 0.5);
  EXPECT_EQ(schedule({7.5, 10}), 0.125);
  EXPECT_EQ(Read("{name: step, every: 0.5, factor: 0.5}")({1, 10}), 0.25);
}

TEST(Schedule, StepWantsExactlyOneOfEveryAndAt) {
  EXPECT_THAT(ErrorsOf("step"), HasSubstr("schedule 'step' needs one of 'every' and 'at'"));
  EXPECT_THAT(ErrorsOf("{name: step, every: 2, at: [3]}"),
              HasSubstr("schedule 'step' needs one of 'every' and 'at'"));
  EXPECT_THAT(ErrorsOf("multistep"), HasSubstr("schedule 'multistep' needs 'at'"));
  EXPECT_THAT(ErrorsOf("{name: step, at: [8, 6]}"),
              HasSubstr("the epochs in 'at' are not in ascending order"));
}

TEST(Schedule, UnknownNameIsAnError) { EXPECT_THAT(ErrorsOf("cosin"), HasSubstr("cosin")); }

TEST(Schedule, CosineFallsToItsEnd) {
  const Schedule schedule = Read("{name: cosine, to: 0.1}");
  EXPECT_DOUBLE_EQ(schedule({0, 8}), 1);
  EXPECT_DOUBLE_EQ(schedule({2, 8}), 0.1 + 0.9 * 0.5 * (1 + std::cos(std::numbers::pi / 4)));
  EXPECT_DOUBLE_EQ(schedule({8, 8}), 0.1);
  EXPECT_DOUBLE_EQ(schedule({9, 8}), 0.1) << "beyond the end it stays";
}

TEST(Schedule, PolynomialFallsWithItsPower) {
  const Schedule schedule = Read("{name: polynomial, power: 2}");
  EXPECT_DOUBLE_EQ(schedule({0, 10}), 1);
  EXPECT_DOUBLE_EQ(schedule({5, 10}), 0.25);
  EXPECT_DOUBLE_EQ(schedule({10, 10}), 0);
  EXPECT_DOUBLE_EQ(Read("{name: polynomial, power: 2, to: 0.2}")({5, 10}), 0.2 + 0.8 * 0.25);
}

// The values are those of torch.optim.lr_scheduler.OneCycleLR(max_lr=1, total_steps=101,
// cycle_momentum=False) at steps 0, 10, 60 and 100; its phases end at steps 0.3 * 101 - 1 and 100.
TEST(Schedule, OneCycleFollowsPyTorch) {
  const Schedule schedule = Read("{name: one_cycle, rise: 0.293}");
  EXPECT_NEAR(schedule({0, 100}), 0.04, 1e-12);
  EXPECT_NEAR(schedule({10, 100}), 0.2904739632130776, 1e-12);
  EXPECT_NEAR(schedule({29.3, 100}), 1, 1e-12);
  EXPECT_NEAR(schedule({60, 100}), 0.6025806488883263, 1e-12);
  EXPECT_NEAR(schedule({100, 100}), 4e-6, 1e-12);
}

TEST(Schedule, OneCycleKeepsItsBounds) {
  for (const char* wrong : {"rise: 1", "rise: 0", "start_divisor: 0.5", "end_divisor: 0.5"}) {
    const std::string key = std::string(wrong).substr(0, std::string(wrong).find(':'));
    EXPECT_THAT(ErrorsOf("{name: one_cycle, " + std::string(wrong) + "}"), HasSubstr(key));
  }
  const Schedule schedule = Read("{name: one_cycle, start_divisor: 2, end_divisor: 1}");
  EXPECT_DOUBLE_EQ(schedule({0, 10}), 0.5);
  EXPECT_DOUBLE_EQ(schedule({10, 10}), 0.5) << "it ends where it began";
}

TEST(Schedule, EveryNameHasHelp) {
  const std::vector<std::string> names = {"constant",  "cosine",     "multistep",
                                          "one_cycle", "polynomial", "step"};
  EXPECT_EQ(ScheduleRegistry::Names(), names);
  for (const auto& [name, entry] : ScheduleRegistry::All())
    EXPECT_FALSE(entry.help.empty()) << name;
}

}  // namespace
}  // namespace dtrain
