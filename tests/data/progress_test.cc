#include "framework/data/files/download.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <vector>

#include "tests/data/temp_folder.h"

namespace dtrain {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Returns the progress line at `done` of `total` bytes, with 1 MB received every second.
std::string LineOf(int64_t done, int64_t total, int columns = 100) {
  std::string line;
  ProgressBar bar("f.gz", total, {true, [&](const ProgressDisplay::Parts& parts) {
                                    if (!parts.empty()) line = status_line::Fit(parts, columns);
                                  }});
  bar.Update(0, FromSeconds(1000));
  bar.Update(done, FromSeconds(1000) + done * 1000);
  return line;
}

TEST(ProgressBar, HoldsBytesRateAndTimeLeft) {
  EXPECT_EQ(LineOf(4'000'000, 10'000'000),
            "f.gz  #####---------  40 %  4.0 MB of 10.0 MB  1.0 MB/s  6.0 s left");
  EXPECT_EQ(LineOf(4'000'000, 0), "f.gz  4.0 MB  1.0 MB/s");
  EXPECT_EQ(LineOf(0, 10'000'000), "f.gz  --------------  0 %  0 B of 10.0 MB");
  EXPECT_EQ(LineOf(3'000'000, 3'000'000),
            "f.gz  ##############  100 %  3.0 MB of 3.0 MB  1.0 MB/s  0.0 s left");
  EXPECT_EQ(LineOf(3'000'000, 2'000'000),
            "f.gz  ##############  100 %  3.0 MB of 2.0 MB  1.0 MB/s");
}

TEST(ProgressBar, FitsNarrowTerminals) {
  for (int columns = 1; columns < 120; ++columns) {
    EXPECT_LE(LineOf(4'000'000, 10'000'000, columns).size(), static_cast<size_t>(columns));
  }
  EXPECT_EQ(LineOf(4'000'000, 10'000'000, 57),
            "f.gz  40 %  4.0 MB of 10.0 MB  1.0 MB/s  6.0 s left");
  EXPECT_EQ(LineOf(4'000'000, 10'000'000, 22), "f.gz  40 %  6.0 s left");
}

// Captures stderr as a terminal of `columns` columns (0: it does not report its width).
class TerminalAsStderr {
 public:
  explicit TerminalAsStderr(unsigned short columns) : stderr_(::dup(STDERR_FILENO)) {
    const winsize size = {.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    int terminal = -1;
    if (::openpty(&screen_, &terminal, nullptr, nullptr, &size) != 0) return;
    ::dup2(terminal, STDERR_FILENO);
    ::close(terminal);
  }
  ~TerminalAsStderr() { ::close(screen_); }
  TerminalAsStderr(const TerminalAsStderr&) = delete;

  // Returns all the output and restores stderr.
  std::string Text() {
    std::fflush(stderr);
    std::fputs("\n", stderr);  // marks the end: a terminal returns output in chunks
    std::string text;
    char chunk[512];
    while (text.find("\r\n") == std::string::npos) {
      const ssize_t bytes = ::read(screen_, chunk, sizeof(chunk));
      if (bytes <= 0) break;
      text.append(chunk, static_cast<size_t>(bytes));
    }
    ::dup2(stderr_, STDERR_FILENO);
    ::close(stderr_);
    return text.substr(0, text.find("\r\n"));
  }

 private:
  int stderr_;
  int screen_ = -1;
};

constexpr Nanos kBegin = FromSeconds(1000);

Nanos AtMs(int64_t ms) { return kBegin + ms * 1'000'000; }

// Returns the output of a 10 MB download: 1 MB existed at the start, then 1 MB arrives every 50 ms.
std::string Shown(unsigned short columns, const std::vector<int64_t>& at_ms,
                  const std::string& label = "f") {
  TerminalAsStderr terminal(columns);
  {
    ProgressBar bar(label, 10'000'000);
    for (const int64_t ms : at_ms) bar.Update(1'000'000 + 20'000 * ms, AtMs(ms));
  }
  return terminal.Text();
}

class ProgressBarTest : public ::testing::Test {
 protected:
  ScopedVariable term_{"TERM", "xterm"};
  ScopedVariable no_color_{"NO_COLOR", "1"};
  ScopedVariable columns_{"COLUMNS", nullptr};
};

constexpr char kErase[] = "\r\x1b[K";

TEST_F(ProgressBarTest, IsRedrawnFiveTimesASecondAndErased) {
  const std::string erase = kErase;
  const std::string first = "f  #-------------  10 %  1.0 MB of 10.0 MB";
  const std::string second = "f  #######-------  50 %  5.0 MB of 10.0 MB";
  EXPECT_EQ(Shown(80, {0}), erase + first + erase);
  EXPECT_EQ(Shown(80, {0, 50, 199}), erase + first + erase);
  EXPECT_EQ(Shown(80, {0, 50, 200}), erase + first + erase + second + erase);
  EXPECT_EQ(Shown(80, {}), "") << "nothing was drawn that is to be erased";
}

TEST_F(ProgressBarTest, HasNoRateForAFifthOfASecond) {
  EXPECT_THAT(Shown(100, {0, 200}), Not(HasSubstr("/s")));
  EXPECT_THAT(Shown(100, {0, 250}), HasSubstr("6.0 MB of 10.0 MB  20.0 MB/s  0.2 s left"));
}

// The line leaves three columns free.
TEST_F(ProgressBarTest, TakesTheTerminalsWidth) {
  const std::string label(30, 'x');
  EXPECT_EQ(Shown(80, {0}, label),
            kErase + label + "  #-------------  10 %  1.0 MB of 10.0 MB" + kErase);
  EXPECT_EQ(Shown(50, {0}, label), kErase + label + "  10 %" + kErase);
  EXPECT_EQ(Shown(0, {0}, label), Shown(80, {0}, label)) << "80 columns are usual";
  const ScopedVariable columns("COLUMNS", "50");
  EXPECT_EQ(Shown(0, {0}, label), Shown(50, {0}, label));
  EXPECT_NE(Shown(80, {0}, label), Shown(50, {0}, label)) << "the terminal knows better";
}

TEST_F(ProgressBarTest, HasColoursUnlessTheyAreUnwanted) {
  EXPECT_THAT(Shown(80, {0}), Not(HasSubstr("\x1b[32m")));
  for (const char* unset : {static_cast<const char*>(nullptr), ""}) {
    const ScopedVariable no_color("NO_COLOR", unset);
    EXPECT_THAT(Shown(80, {0}), HasSubstr("\x1b[32m#\x1b[0m---"));
  }
}

TEST_F(ProgressBarTest, WithoutATerminalThatCanEraseTheLogHasALineNowAndThen) {
  for (const char* poor : {static_cast<const char*>(nullptr), "dumb"}) {
    const ScopedVariable term("TERM", poor);
    EXPECT_EQ(Shown(80, {0, 250}), "");
  }
  ::testing::internal::CaptureStderr();
  {
    ProgressBar bar("f", 10'000'000);
    for (int second = 0; second < 70; ++second) bar.Update(100'000 * second, AtMs(1000 * second));
  }
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("info f  30 %  3.0 MB of 10.0 MB  100.0 kB/s  1:10 left\n"));
  EXPECT_THAT(said, HasSubstr("info f  60 %  6.0 MB"));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 2);
}

}  // namespace
}  // namespace dtrain
