#include "framework/runtime/results/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <vector>

#include "framework/runtime/launch/status_record.h"

namespace dtrain {
namespace {

using testing::HasSubstr;
using testing::Not;

class ProgressTest : public testing::Test {
 protected:
  Progress OnTerminal() {
    options_.terminal = true;
    return Progress(options_, [this](std::string_view text) { shown_.emplace_back(text); });
  }

  ProgressOptions options_ = {.epochs = 10, .steps = 1000, .batch = 64};
  std::vector<std::string> shown_;
};

TEST_F(ProgressTest, ShowsRateLossAndTimeLeft) {
  Progress progress = OnTerminal();
  progress.Update({1, 100, 0.5}, FromSeconds(10));
  EXPECT_TRUE(shown_.empty()) << "no rate is known yet";
  progress.Update({1, 200, 0.25}, FromSeconds(11));
  ASSERT_EQ(shown_.size(), 1U);
  EXPECT_EQ(
      shown_[0],
      "\r\x1b[Kepoch 1/10  step 200/1000  ##------------  6400 samples/s  loss 0.25  8.0 s left");
}

TEST_F(ProgressTest, ShowsAtMostFiveTimesASecond) {
  Progress progress = OnTerminal();
  for (int i = 0; i <= 200; ++i) progress.Update({1, i, 1}, FromSeconds(0.01 * i));
  EXPECT_GE(shown_.size(), 8U);
  EXPECT_LE(shown_.size(), 11U);
}

TEST_F(ProgressTest, NamesTheSlowestRank) {
  Progress progress = OnTerminal();
  progress.Update({1, 1, 1, 2}, 0);
  progress.Update({1, 2, 1, 2}, FromSeconds(1));
  EXPECT_THAT(shown_.at(0), HasSubstr("  slowest rank 2"));
}

TEST_F(ProgressTest, TheBarIsEmptyAtFirstAndFullAtLast) {
  for (const auto& [step, bar] : {std::pair(0, "--------------"),
                                  {71, "--------------"},
                                  {72, "#-------------"},
                                  {999, "#############-"},
                                  {1000, "##############"},
                                  {1001, "##############"}}) {
    shown_.clear();
    Progress progress = OnTerminal();
    progress.Update({1, step - 1, 1}, 0);
    progress.Update({1, step, 1}, FromSeconds(1));
    EXPECT_THAT(shown_.at(0), HasSubstr(std::string("  ") + bar + "  ")) << step;
  }
}

TEST_F(ProgressTest, ColorsOnlyWhenAllowed) {
  options_.color = true;
  Progress progress = OnTerminal();
  progress.Update({1, 1, 1}, 0);
  progress.Update({1, 2, 1}, FromSeconds(1));
  EXPECT_THAT(shown_.at(0), HasSubstr("\x1b[32m"));
}

TEST_F(ProgressTest, PausesDoNotCount) {
  Progress progress = OnTerminal();
  progress.Update({1, 0, 1}, 0);
  progress.Update({1, 100, 1}, FromSeconds(1));
  progress.Pause();
  EXPECT_EQ(shown_.back(), "\r\x1b[K");
  progress.Pause();
  EXPECT_EQ(shown_.size(), 2U) << "nothing was left to wipe";
  progress.Update({1, 100, 1}, FromSeconds(50));
  progress.Update({1, 200, 1}, FromSeconds(51));
  EXPECT_THAT(shown_.back(), HasSubstr("6400 samples/s"));
}

TEST_F(ProgressTest, WithoutATerminalALogLineNowAndThen) {
  Progress progress(options_);
  testing::internal::CaptureStderr();
  for (int second = 0; second <= 40; ++second) {
    progress.Update({1, second, 1}, FromSeconds(second));
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("epoch 1/10  step 1/1000  64 samples/s  loss 1  "));
  EXPECT_THAT(said, HasSubstr("step 31/1000"));
  EXPECT_THAT(said, Not(HasSubstr("\r")));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 2);
}

TEST_F(ProgressTest, WritesToStderrWhenNobodyElseIsNamed) {
  options_.terminal = true;
  Progress progress(options_);
  testing::internal::CaptureStderr();
  progress.Update({1, 100, 0.5}, FromSeconds(10));
  progress.Update({1, 200, 0.25}, FromSeconds(11));
  progress.Pause();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "\r\x1b[Kepoch 1/10  step 200/1000  ##------------  6400 samples/s  loss 0.25  8.0 s "
            "left\r\x1b[K");
}

TEST_F(ProgressTest, ATerminalIsSeenWithoutASupervisor) {
  ::unsetenv(kProgressVariable);
  int screen = -1, terminal = -1;
  ASSERT_EQ(::openpty(&screen, &terminal, nullptr, nullptr, nullptr), 0);
  const int before = ::dup(STDERR_FILENO);
  ::dup2(terminal, STDERR_FILENO);
  DetectTerminal(options_);
  ::dup2(before, STDERR_FILENO);
  for (const int fd : {screen, terminal, before}) ::close(fd);
  EXPECT_TRUE(options_.terminal);
}

TEST_F(ProgressTest, TheSupervisorTellsOfItsTerminal) {
  ::setenv(kProgressVariable, "1", 1);
  ::unsetenv("NO_COLOR");
  DetectTerminal(options_);
  EXPECT_TRUE(options_.terminal);
  EXPECT_TRUE(options_.color);
  ::setenv("NO_COLOR", "1", 1);
  DetectTerminal(options_);
  EXPECT_TRUE(options_.terminal);
  EXPECT_FALSE(options_.color);
  ::unsetenv("NO_COLOR");
  ::unsetenv(kProgressVariable);
}

}  // namespace
}  // namespace dtrain
