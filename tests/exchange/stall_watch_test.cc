// Tests StallWatch with a fake clock; exchange_test.cc tests the messages of a real stall.
#include "framework/exchange/stall_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/comm/local/local_world.h"
#include "framework/core/error.h"
#include "tests/exchange/exchange_fixture.h"
#include "tests/support/hand_clock.h"

namespace dtrain {
namespace {

constexpr Nanos kSecond = 1'000'000'000;

// Rank 0 of two; rank 1 never answers.
class StallWatchTest : public testing::Test {
 protected:
  StallWatchTest()
      : strategy_(MakeStrategy("{name: wfbp}")),
        inputs_(*strategy_, {.workers = 2}, 0),
        world_(2),
        transport_(world_.Connect(0)),
        other_(world_.Connect(1)),
        parts_(inputs_.spec, 0, DependenciesOver(*transport_, inputs_.spec, clock_, pools_)),
        watch_(parts_.driver, inputs_.spec.actors.placement, clock_, 10 * kSecond,
               [] { return false; }) {}

  // Polls every 0.1 s.
  void Poll(double seconds) {
    for (const Nanos end = clock_.now + FromSeconds(seconds); clock_.now < end;) {
      clock_.now += kSecond / 10;
      watch_.NothingMoved([this] {
        clock_.now += kSecond / 10;
        return true;
      });
    }
  }

  const std::unique_ptr<Strategy> strategy_;
  const RankInputs inputs_;
  HandClock clock_;
  BlobPools pools_;
  LocalWorld world_;
  const std::unique_ptr<Transport> transport_, other_;
  RankParts parts_;
  StallWatch watch_;
};

TEST_F(StallWatchTest, ARankThatDoesNotAnswerIsNamedBehindTheLimit) {
  EXPECT_NO_THROW(Poll(9.5));
  EXPECT_THAT([this] { Poll(1); }, testing::ThrowsMessage<StalledError>(
                                       testing::HasSubstr("rank 1: worker 1, no answer")));
}

// A suspended process (Ctrl-Z of a whole run, or scontrol suspend) must not blame the other ranks: they stood still
// too.
TEST_F(StallWatchTest, ATimeInWhichThisProcessStoodStillIsNoWait) {
  EXPECT_NO_THROW(Poll(6));
  clock_.now += 3600 * kSecond;
  EXPECT_NO_THROW(Poll(3));
  EXPECT_THROW(Poll(2), StalledError);
}

}  // namespace
}  // namespace dtrain
