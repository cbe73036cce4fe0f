#include "framework/launch/step_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

#include <nlohmann/json.hpp>

#include "framework/core/file.h"
#include "tests/runtime/own_data_set.h"
#include "tests/runtime/run_fixture.h"
#include "tests/runtime/said.h"

namespace dtrain {
namespace {

using testing::HasSubstr;

void Sleep(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

class StepWatchTest : public testing::Test {
 protected:
  std::string Within(double seconds) { return said_.Within(seconds); }

  Said said_;
  StepWatch watch_{0.5, said_.Sink()};
};

TEST_F(StepWatchTest, AStepThatDoesNotEndIsNoticed) {
  for (int step = 0; step < 20; ++step) {
    watch_.StepBegins();
    Sleep(0.02);
  }
  EXPECT_THAT(Within(20), HasSubstr("a step has not ended for "));
}

TEST_F(StepWatchTest, TheFirstStepHasTenTimesAsLong) {
  watch_.StepBegins();
  EXPECT_EQ(Within(4), "");
  EXPECT_THAT(Within(20), HasSubstr(", the first one"));
}

TEST_F(StepWatchTest, NothingIsExpectedBetweenSteps) {
  EXPECT_EQ(Within(7), "") << "before the first one, which has 5 s";
  for (int step = 0; step < 50; ++step) {
    watch_.StepBegins();
    Sleep(0.02);
  }
  watch_.Pause();
  EXPECT_EQ(Within(8), "") << "a step like those has 5 s";
}

// Runs one process on a line of numbers and calls `happens` before each mini-batch.
class FailingRun : public RunFixture {
 protected:
  void RunWith(const std::function<void(uint64_t epoch)>& happens) {
    OwnData data{.train_samples = 64, .test_samples = 16, .numbers = 3, .classes = 2};
    data.number = [](Split, int64_t sample, int64_t i) {
      return std::sin(0.1 * static_cast<double>(sample * 3 + i));
    };
    data.label = [](int64_t sample) { return sample % 2; };
    data.watch = [&] { return [&](uint64_t epoch, std::span<const int64_t>) { happens(epoch); }; };
    Run(OnALine(folder_, data, {"epochs=9", "stall_seconds=1"}));
  }

  nlohmann::json ErrorOfRank0() const {
    return nlohmann::json::parse(ReadFile(folder_ / "run/errors/rank-0.json"));
  }
};

TEST_F(FailingRun, EndsWithCode7AndSaysAfterWhichStep) {
  // Another process starts this test again and takes over its folder.
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  if (const char* const first = std::getenv("DTRAIN_HUNG_RUN")) {
    std::filesystem::remove_all(folder_);
    folder_ = first;
  }
  ::setenv("DTRAIN_HUNG_RUN", folder_.c_str(), 1);
  EXPECT_EXIT(RunWith([](uint64_t epoch) {
                if (epoch == 2) Sleep(100);
              }),
              testing::ExitedWithCode(7), "after step [78]: a step has not ended for ");
  ::unsetenv("DTRAIN_HUNG_RUN");
  const nlohmann::json error = ErrorOfRank0();
  EXPECT_EQ(error["exit_code"], 7);
  EXPECT_GE(error["step"], 7);
  EXPECT_THAT(error["what"], HasSubstr("a step has not ended for"));
}

TEST_F(FailingRun, AnErrorOfAnyKindIsRecordedWithItsStep) {
  const auto fails = [](uint64_t epoch) {
    if (epoch == 2) throw std::runtime_error("out of numbers");
  };
  EXPECT_THROW(RunWith(fails), std::runtime_error);
  const nlohmann::json error = ErrorOfRank0();
  EXPECT_EQ(error["exit_code"], 1);
  EXPECT_GE(error["step"], 7);
  EXPECT_THAT(error["what"], HasSubstr("out of numbers"));
}

}  // namespace
}  // namespace dtrain
