#include "framework/data/files/download.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <vector>

#include "tests/data/temp_folder.h"

namespace dtrain {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ProgressLine, HoldsBytesRateAndTimeLeft) {
  struct {
    int64_t done, total;
    double rate;
    std::string line;
  } const cases[] = {
      {4'000'000, 10'000'000, 2'000'000,
       "f.gz  [##########---------------]   40 %  4.0 MB of 10.0 MB  2.0 MB/s  ETA 3.0 s"},
      {4'000'000, 0, 0, "f.gz  4.0 MB"},
      {4'000'000, 0, 2'000'000, "f.gz  4.0 MB  2.0 MB/s"},
      {0, 10'000'000, 0, "f.gz  [------------------------------]    0 %  0 B of 10.0 MB"},
      {1, 1, 1, "f.gz  [##############################]  100 %  1 B of 1 B  1 B/s  ETA 0.0 s"},
      {3, 2, 1, "f.gz  [##############################]  100 %  3 B of 2 B  1 B/s"},
  };
  for (const auto& [done, total, rate, line] : cases) {
    EXPECT_EQ(ProgressLine("f.gz", done, total, rate, 80, false), line);
  }
}

TEST(ProgressLine, FitsNarrowTerminals) {
  for (int width = 1; width < 120; ++width) {
    EXPECT_LE(ProgressLine("file", 5, 10, 1, width, false).size(), static_cast<size_t>(width));
  }
  // 4 + 36 columns of text, and 6 of blanks and brackets: a bar has 8 at least.
  EXPECT_EQ(ProgressLine("file", 5, 10, 1, 54, false),
            "file  [####----]   50 %  5 B of 10 B  1 B/s  ETA 5.0 s");
  EXPECT_EQ(ProgressLine("file", 5, 10, 1, 53, false),
            "file   50 %  5 B of 10 B  1 B/s  ETA 5.0 s");
}

TEST(ProgressLine, IsColouredOnlyWhenAsked) {
  EXPECT_THAT(ProgressLine("f", 5, 10, 1, 80, true), HasSubstr("[\x1b[32m###############\x1b[0m-"));
  EXPECT_THAT(ProgressLine("f", 5, 10, 1, 80, false), Not(HasSubstr("\x1b")));
}

// What is written to stderr while stderr is a terminal of `columns` (0: it does not say how many).
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

  // All that came; stderr is what it was before.
  std::string Text() {
    std::fflush(stderr);
    std::fputs("\n", stderr);  // an end to read up to: a terminal hands over what came in pieces
    std::string text;
    char piece[512];
    while (text.find("\r\n") == std::string::npos) {
      const ssize_t bytes = ::read(screen_, piece, sizeof(piece));
      if (bytes <= 0) break;
      text.append(piece, static_cast<size_t>(bytes));
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

// 1 MB of 10 were here at the beginning; then 1 MB came every 50 ms.
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
};

constexpr char kErase[] = "\r\x1b[K";

TEST_F(ProgressBarTest, IsRedrawnTenTimesASecondAndErased) {
  const std::string erase = kErase;
  const std::string first = "f  [###---------------------------]   10 %  1.0 MB of 10.0 MB";
  const std::string second = "f  [#########---------------------]   30 %  3.0 MB of 10.0 MB";
  EXPECT_EQ(Shown(80, {0}), erase + first + erase);
  EXPECT_EQ(Shown(80, {0, 50, 99}), erase + first + erase);
  EXPECT_EQ(Shown(80, {0, 50, 100}), erase + first + erase + second + erase);
  EXPECT_EQ(Shown(80, {}), "") << "nothing was drawn that is to be erased";
}

TEST_F(ProgressBarTest, HasNoRateForAFifthOfASecond) {
  EXPECT_THAT(Shown(100, {0, 150}), Not(HasSubstr("/s")));
  EXPECT_THAT(Shown(100, {0, 200}), Not(HasSubstr("/s")));
  EXPECT_THAT(Shown(100, {0, 250}), HasSubstr("6.0 MB of 10.0 MB  20.0 MB/s  ETA 0.2 s"));
}

TEST_F(ProgressBarTest, TakesTheTerminalsWidthWithoutTheLastColumn) {
  const std::string label(60, 'x');
  for (const int columns : {50, 80, 20}) {
    const std::string line = (label + "   10 %  1.0 MB of 10.0 MB").substr(0, columns - 1);
    EXPECT_EQ(Shown(columns, {0}, label), kErase + line + kErase);
  }
  EXPECT_EQ(Shown(0, {0}, label), Shown(80, {0}, label)) << "80 columns are usual";
}

TEST_F(ProgressBarTest, HasColoursUnlessTheyAreUnwanted) {
  EXPECT_THAT(Shown(80, {0}), Not(HasSubstr("\x1b[32m")));
  for (const char* unset : {static_cast<const char*>(nullptr), ""}) {
    const ScopedVariable no_color("NO_COLOR", unset);
    EXPECT_THAT(Shown(80, {0}), HasSubstr("\x1b[32m###\x1b[0m---"));
  }
}

TEST_F(ProgressBarTest, IsSilentWithoutATerminalThatCanErase) {
  for (const char* poor : {static_cast<const char*>(nullptr), "dumb"}) {
    const ScopedVariable term("TERM", poor);
    EXPECT_EQ(Shown(80, {0, 250}), "");
  }
  ::testing::internal::CaptureStderr();
  {
    ProgressBar bar("f", 10);
    bar.Update(1, kBegin);
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace dtrain
