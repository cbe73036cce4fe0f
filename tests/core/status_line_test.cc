#include "framework/core/status_line.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>

namespace dtrain::status_line {
namespace {

const std::vector<Part> kLine = {
    {"epoch 3/10", 2}, {"step 7/9", 3}, {"", 1, 0.5}, {"slowest 2", 0}};

TEST(StatusLine, WhatMattersLeastGivesWayFirstAndTheBarGetsShorterBefore) {
  EXPECT_EQ(Fit(kLine, 80), "epoch 3/10  step 7/9  #######-------  slowest 2");
  EXPECT_EQ(Fit(kLine, 47), "epoch 3/10  step 7/9  #######-------  slowest 2");
  EXPECT_EQ(Fit(kLine, 46), "epoch 3/10  step 7/9  ######-------  slowest 2");
  EXPECT_EQ(Fit(kLine, 38), "epoch 3/10  step 7/9  ##---  slowest 2");
  EXPECT_EQ(Fit(kLine, 37), "epoch 3/10  step 7/9  #######-------") << "and has all the room then";
  EXPECT_EQ(Fit(kLine, 27), "epoch 3/10  step 7/9  ##---");
  EXPECT_EQ(Fit(kLine, 26), "epoch 3/10  step 7/9");
  EXPECT_EQ(Fit(kLine, 19), "step 7/9");
  EXPECT_EQ(Fit(kLine, 7), "step 7/") << "a single one is cut";
  EXPECT_EQ(Fit({}, 7), "");
}

TEST(StatusLine, NeverIsWiderThanItMayBe) {
  for (int columns = 1; columns <= 200; ++columns) {
    EXPECT_LE(Fit(kLine, columns).size(), static_cast<size_t>(columns));
    EXPECT_LE(Fit({{"", 0, 0.9}}, columns).size(), static_cast<size_t>(columns));
  }
}

TEST(StatusLine, OfEqualsTheLastGivesWay) {
  EXPECT_EQ(Fit({{"one", 1}, {"two", 1}, {"six", 1}}, 8), "one  two");
}

TEST(StatusLine, ColourTakesNoRoom) {
  EXPECT_EQ(Fit({{"", 0, 0.5}, {"x", 0}}, 17, true), "\x1b[32m#######\x1b[0m-------  x");
}

TEST(StatusLine, ARecordBringsTheParts) {
  std::string record = Encode(kLine);
  ASSERT_EQ(record.front(), kRecord);
  ASSERT_EQ(record.back(), '\n');
  const auto parts = Decode(record.substr(1, record.size() - 2));
  ASSERT_TRUE(parts.has_value());
  EXPECT_EQ(Fit(*parts, 60), Fit(kLine, 60));
  EXPECT_EQ(Fit(*parts, 20), Fit(kLine, 20));
  EXPECT_EQ(Encode({}), std::string(1, kRecord) + "\n");
  EXPECT_EQ(Decode("")->size(), 0U);
}

TEST(StatusLine, WhatIsNoRecordIsRefused) {
  for (const char* const text :
       {"x",
        "1\x1f"
        "2\x1fx",
        "1\x1d", "1\x1fnan\x1fx\x1d", "word1\x1f-1\x1fx\x1d", "1\x1f-1word\x1fx\x1d"}) {
    EXPECT_FALSE(Decode(text).has_value()) << text;
  }
}

// Control characters are escaped, since they would move the cursor.
TEST(StatusLine, TextThatCannotBeShownIsNotSent) {
  EXPECT_EQ(Fit(*Decode("1\x1f-1\x1f"
                        "a\rb\x1b[K\x1d"),
                80),
            "a\\u000db\\u001b[K");
  EXPECT_EQ(Encode({{"a\nb"}}).find('\n'), Encode({{"a\nb"}}).size() - 1);
}

// A terminal that another process has set to non-blocking may be full for a while; it is not
// closed.
TEST(StatusLine, TextWaitsForAReaderWhoIsSlow) {
  int ends[2] = {};
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ASSERT_EQ(::fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
  const std::string block(4096, 'x');
  size_t full = 0;
  for (ssize_t n = 0; (n = ::write(ends[1], block.data(), block.size())) > 0;) {
    full += static_cast<size_t>(n);
  }
  std::string read;
  std::thread reader([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    char chunk[4096];
    for (ssize_t n = 0; (n = ::read(ends[0], chunk, sizeof chunk)) > 0;) {
      read.append(chunk, static_cast<size_t>(n));
    }
  });
  const std::string text = std::string(200'000, 'y') + "\n";
  Pass(ends[1], text);
  ::close(ends[1]);
  reader.join();
  ::close(ends[0]);
  ASSERT_EQ(read.size(), full + text.size());
  EXPECT_EQ(read.substr(full), text);
}

TEST(StatusLine, TextForAReaderWhoHasGoneIsGivenUp) {
  int ends[2] = {};
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  std::thread reader([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ::close(ends[0]);
  });
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  Pass(ends[1], std::string(200'000, 'y') + "\n");
  std::signal(SIGPIPE, before);
  reader.join();
  ::close(ends[1]);
}

}  // namespace
}  // namespace dtrain::status_line
