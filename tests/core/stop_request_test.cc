#include "framework/core/stop_request.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "tests/support/message_of.h"

namespace dtrain {
namespace {

TEST(StopRequest, EndsWorkWithTheFirstSignalsName) {
  EXPECT_FALSE(StopRequested());
  EndIfStopped("reading a.csv");
  RequestStop(SIGTERM);
  RequestStop(SIGINT);
  EXPECT_EQ(StopSignalNumber(), SIGTERM);
  EXPECT_EQ(WhatOf<StoppedError>([] { EndIfStopped("reading a.csv"); }),
            "stopped by SIGTERM while reading a.csv");
  try {
    EndIfStopped("reading a.csv");
  } catch (const Error& error) {
    EXPECT_EQ(static_cast<int>(error.code()), 75);
    EXPECT_EQ(error.hint(),
              "start the same command again; a run with checkpoints goes on with --resume auto")
        << "which is true at any time";
  }
  ForgetStopRequest();
  EndIfStopped("reading a.csv");
}

}  // namespace
}  // namespace dtrain
