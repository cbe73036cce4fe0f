#include "framework/launch/supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fmt/format.h>

namespace dtrain {
namespace {

using testing::ElementsAre;

RankStatus StatusOf(int rank, std::optional<int> exit_code = std::nullopt,
                    std::string message = "") {
  return {.rank = rank,
          .host = "node1",
          .pid = 100 + rank,
          .doing = exit_code ? Doing::kEnded : Doing::kTraining,
          .step = 815,
          .exit_code = exit_code,
          .message = std::move(message)};
}

void ExpectVerdict(const JobEnd& end, int exit_code, const std::string& line, bool rank_lost) {
  const Verdict verdict = ClassifyExit(end);
  EXPECT_EQ(verdict.exit_code, exit_code);
  EXPECT_EQ(verdict.line, line);
  EXPECT_EQ(verdict.rank_lost, rank_lost);
}

TEST(JobEnd, DoneSaysNothing) {
  ExpectVerdict({.exit_status = 0, .ranks = {StatusOf(0, 0), StatusOf(1, 0)}}, 0, "", false);
}

TEST(JobEnd, AKilledRankIsNamed) {
  ExpectVerdict({.exit_status = 137, .ranks = {StatusOf(0), StatusOf(1)}, .first_lost = 1}, 137,
                "rank 1 (node1, pid 101) was killed by signal 9 (Killed) after step 815, training",
                true);
  ExpectVerdict({.exit_status = 134, .ranks = {StatusOf(0), StatusOf(1)}, .first_lost = 0}, 134,
                "rank 0 (node1, pid 100) was killed by signal 6 (Aborted) after step 815, training",
                true);
}

TEST(JobEnd, ARankThatLeftWithoutAWord) {
  ExpectVerdict({.exit_status = 1, .ranks = {StatusOf(0)}, .first_lost = 0}, 1,
                "rank 0 (node1, pid 100) left with exit status 1 after step 815, training", false);
  ExpectVerdict({.exit_status = 99, .ranks = {StatusOf(0)}, .first_lost = 0}, 4,
                "rank 0 (node1, pid 100) left with exit status 99 after step 815, training", true);
}

TEST(JobEnd, TheFailingRankCountsNotThoseThatFollowed) {
  ExpectVerdict(
      {.exit_status = 4, .ranks = {StatusOf(0, 4, "peer"), StatusOf(1, 5, "loss is nan")}}, 5,
      "rank 1 (node1, pid 101) ended with exit code 5 after step 815: loss is nan", false);
  ExpectVerdict({.exit_status = 4, .ranks = {StatusOf(0, 4), StatusOf(1)}}, 4,
                "rank 0 (node1, pid 100) ended with exit code 4 after step 815", true);
}

TEST(JobEnd, StoppedIsReadyToResume) {
  ExpectVerdict(
      {.exit_status = 75, .ranks = {StatusOf(0, 75), StatusOf(1, 75)}, .stop_signal = SIGINT}, 75,
      "stopped after step 815; go on with --resume auto", false);
  // mpirun's status may be that of another rank, which ended because the first one did.
  ExpectVerdict({.exit_status = 1, .ranks = {StatusOf(0), StatusOf(1, 75)}}, 75,
                "stopped after step 815; go on with --resume auto", false);
  ExpectVerdict({.exit_status = 1, .ranks = {StatusOf(0, 75), StatusOf(1, 75)}}, 75,
                "stopped after step 815; go on with --resume auto", false);
  ExpectVerdict({.exit_status = 1, .ranks = {StatusOf(0), StatusOf(1)}}, 1,
                "mpirun ended with exit status 1", false);
  ExpectVerdict({.exit_status = 75}, 75, "stopped after step 0; go on with --resume auto", false);
  EXPECT_EQ(
      ClassifyExit({.exit_status = 75, .ranks = {StatusOf(0, 75)}}, "--resume auto --output x")
          .line,
      "stopped after step 815; go on with --resume auto --output x");
}

TEST(JobEnd, ALossAfterAStopIsNotRestarted) {
  ExpectVerdict(
      {.exit_status = 137, .ranks = {StatusOf(0)}, .first_lost = 0, .stop_signal = SIGTERM}, 137,
      "rank 0 (node1, pid 100) was killed by signal 9 (Killed) after step 815, training", false);
}

TEST(JobEnd, ASecondSignalLeavesAtOnce) {
  ExpectVerdict({.exit_status = 137, .ranks = {StatusOf(0)}, .stop_signal = SIGINT, .killed = true},
                130, "left at once at a second signal 2 (Interrupt)", false);
}

TEST(JobEnd, WithoutRecordsMpirunsStatusCounts) {
  ExpectVerdict({.exit_status = 139}, 139, "a rank was killed by signal 11 (Segmentation fault)",
                true);
  ExpectVerdict({.exit_status = 3}, 3, "mpirun ended with exit status 3", false);
  ExpectVerdict({.exit_status = 1}, 1, "mpirun ended with exit status 1", false);
  ExpectVerdict({.exit_status = 205}, 4,
                "mpirun lost a node or could not start on it (exit status 205)", true);
}

// mpirun adds 128 to the number of a signal, which is from 1 to 64.
TEST(JobEnd, SignalsAndOurOwnStatusesHaveBounds) {
  ExpectVerdict({.exit_status = 129}, 129, "a rank was killed by signal 1 (Hangup)", true);
  ExpectVerdict({.exit_status = 192}, 192, "a rank was killed by signal 64 (Real-time signal 30)",
                true);
  for (const int other : {8, 128, 193}) {
    const std::string status = fmt::format("exit status {}", other);
    ExpectVerdict({.exit_status = other}, 4,
                  "mpirun lost a node or could not start on it (" + status + ")", true);
    ExpectVerdict({.exit_status = other, .ranks = {StatusOf(0)}, .first_lost = 0}, 4,
                  "rank 0 (node1, pid 100) left with " + status + " after step 815, training",
                  true);
  }
  ExpectVerdict({.exit_status = 7}, 7, "mpirun ended with exit status 7", false);
}

TEST(JobEnd, RestartsResume) {
  EXPECT_THAT(WithResumeAuto({"train", "--resume", "none", "--output", "x"}),
              ElementsAre("train", "--output", "x", "--resume", "auto"));
  EXPECT_THAT(WithResumeAuto({"train", "--resume=a.h5"}), ElementsAre("train", "--resume", "auto"));
  EXPECT_THAT(WithResumeAuto({"train"}), ElementsAre("train", "--resume", "auto"));
}

TEST(JobEnd, AStoppedRankIsNamedAndMayBeRestarted) {
  ExpectVerdict(
      {.exit_status = 137, .ranks = {StatusOf(0), StatusOf(1)}, .stopped = 1}, 7,
      "rank 1 (node1, pid 101) did not answer after step 815, training: it was stopped and not "
      "continued",
      true);
}

TEST(JobEnd, MpirunItselfMayBeKilledOrHang) {
  ExpectVerdict({.exit_status = 137, .ranks = {StatusOf(0)}, .first_lost = 0, .mpirun_signal = 9},
                137, "mpirun was killed by signal 9 (Killed)", true);
  ExpectVerdict({.exit_status = 137,
                 .ranks = {StatusOf(0), StatusOf(1)},
                 .first_lost = 1,
                 .mpirun_hung = true},
                4, "rank 1 (node1, pid 101) was lost after step 815, training", true);
  ExpectVerdict({.exit_status = 137,
                 .ranks = {StatusOf(0, 6, "disk full"), StatusOf(1)},
                 .mpirun_hung = true},
                6, "rank 0 (node1, pid 100) ended with exit code 6 after step 815: disk full",
                false);
  ExpectVerdict({.exit_status = 137, .ranks = {StatusOf(0), StatusOf(1)}, .mpirun_hung = true}, 4,
                "no rank lives, and mpirun did not end", true);
  ExpectVerdict({.exit_status = 137, .mpirun_hung = true}, 4,
                "mpirun started no rank, and did not end", true);
}

TEST(JobEnd, WhatTheRanksSaidCountsWhenMpirunHangsOrIsKilled) {
  ExpectVerdict({.exit_status = 137,
                 .ranks = {StatusOf(0, 0), StatusOf(1, 0)},
                 .mpirun_hung = true,
                 .all_said = true},
                0, "", false);
  ExpectVerdict({.exit_status = 137,
                 .ranks = {StatusOf(0, 0), StatusOf(1, 0)},
                 .mpirun_signal = 9,
                 .all_said = true},
                0, "", false);
  ExpectVerdict({.exit_status = 137,
                 .ranks = {StatusOf(0, 75), StatusOf(1, 75)},
                 .stop_signal = SIGTERM,
                 .mpirun_hung = true,
                 .all_said = true},
                75, "stopped after step 815; go on with --resume auto", false);
  ExpectVerdict({.exit_status = 137,
                 .ranks = {StatusOf(0, 4), StatusOf(1, 5, "loss is nan")},
                 .mpirun_hung = true,
                 .all_said = true},
                5, "rank 1 (node1, pid 101) ended with exit code 5 after step 815: loss is nan",
                false);
  // If ranks are on other machines, only rank 0's record may be available here.
  ExpectVerdict({.exit_status = 137, .ranks = {StatusOf(0, 0)}, .mpirun_hung = true}, 0, "", false);
}

TEST(JobEnd, AKilledRankIsReportedAsSuchWhenMpirunHangs) {
  ExpectVerdict({.exit_status = 137,
                 .ranks = {StatusOf(0), StatusOf(1)},
                 .first_lost = 1,
                 .mpirun_hung = true,
                 .lost_status = 139},
                139,
                "rank 1 (node1, pid 101) was killed by signal 11 (Segmentation fault) after step "
                "815, training",
                true);
}

TEST(JobEnd, AStopBeforeAnyRankHadBegunLosesNothing) {
  ExpectVerdict({.exit_status = 137, .stop_signal = SIGTERM, .never_began = true}, 75,
                "stopped before any rank had begun; go on with --resume auto", false);
}

}  // namespace
}  // namespace dtrain
