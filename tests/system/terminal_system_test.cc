// Tests the output at a terminal: the status line fits, follows a resize, and never shares a line with other text.
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <functional>
#include <regex>

#include "tests/system/system_fixture.h"

namespace dtrain {
namespace {

using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Not;
using ::testing::SizeIs;

// The lines of a terminal, after carriage returns and "erase to the end"; other sequences are colours.
class Screen {
 public:
  explicit Screen(size_t columns) : columns_(columns) {}

  void Resize(size_t columns) { columns_ = columns; }
  void Take(const std::string& bytes) {
    for (const char c : bytes) Take(c);
  }
  // Returns the finished lines and the one at the cursor.
  std::vector<std::string> lines() const {
    std::vector<std::string> all = lines_;
    all.push_back(line_);
    return all;
  }
  // Returns each state of a line in which the cursor went back to its begin or on to the next line.
  const std::vector<std::string>& shown() const { return shown_; }
  size_t too_wide() const { return too_wide_; }

 private:
  void Take(char c) {
    if (!sequence_.empty()) {
      sequence_ += c;
      if (sequence_.size() == 2 || !::isalpha(c)) return;
      if (c == 'K') line_.resize(std::min(line_.size(), cursor_));
      sequence_.clear();
    } else if (c == '\x1b') {
      sequence_ = c;
    } else if (c == '\r') {
      Leave();
    } else if (c == '\n') {
      Leave();
      lines_.push_back(line_);
      line_.clear();
    } else {
      line_.resize(std::max(line_.size(), cursor_ + 1), ' ');
      line_[cursor_++] = c;
      if (cursor_ > columns_ && is_status()) ++too_wide_;
    }
  }
  bool is_status() const { return std::regex_search(line_, std::regex("step \\d+/\\d+")); }
  void Leave() {
    if (cursor_ > 0) shown_.push_back(line_);
    cursor_ = 0;
  }

  size_t columns_;
  std::string line_, sequence_;
  size_t cursor_ = 0;
  std::vector<std::string> lines_, shown_;
  size_t too_wide_ = 0;
};

bool IsStatus(const std::string& line) {
  return std::regex_search(line, std::regex("^(epoch|step|ps_|allreduce).*step |^step "));
}

class TerminalTest : public SystemTest {
 protected:
  // Runs a command on a terminal.  `look` is called after each chunk of output.
  int OnTerminal(const std::string& arguments, unsigned short columns,
                 const std::function<void(int terminal, pid_t child)>& look = {}) {
    screen_ = Screen(columns);
    raw_.clear();
    const winsize size = {.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    int terminal = -1;
    const pid_t child = ::forkpty(&terminal, nullptr, nullptr, &size);
    if (child == 0) {
      const std::string command = "unset COLUMNS NO_COLOR; export TERM=xterm CONFIGS='" +
                                  Configs() + "/runs'; cd '" + folder_.string() + "'; exec " +
                                  Program() + " " + arguments;
      ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      ::_exit(127);
    }
    char chunk[4096];
    for (ssize_t bytes = 0; (bytes = ::read(terminal, chunk, sizeof(chunk))) > 0;) {
      const std::string text(chunk, static_cast<size_t>(bytes));
      raw_ += text;
      screen_.Take(text);
      if (look) look(terminal, child);
    }
    ::close(terminal);
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  bool Shows(const std::string& what) const {
    for (const std::string& line : screen_.shown()) {
      if (line.find(what) != std::string::npos) return true;
    }
    return false;
  }
  std::vector<std::string> Statuses() const {
    std::vector<std::string> lines;
    std::ranges::copy_if(screen_.shown(), std::back_inserter(lines), IsStatus);
    return lines;
  }
  // Checks that messages begin at the start of a line, and that the status line is gone at the end.
  void ExpectWholeLines() const {
    for (const std::string& line : screen_.lines()) {
      EXPECT_FALSE(IsStatus(line)) << line << "\n" << raw_;
      EXPECT_FALSE(std::regex_search(line, std::regex(".+\\d\\d:\\d\\d:\\d\\d (info|warning)")))
          << line;
    }
    EXPECT_EQ(screen_.lines().back(), "") << raw_;
  }

  Screen screen_{80};
  std::string raw_;
};

// Epochs of a second, with steps of a hundredth of a second.
constexpr char kSlow[] =
    "train --config $CONFIGS/quickstart.yaml --set data.train_samples=6400 "
    "--set data.test_samples=100 --set batch=64 --set cluster.step_seconds=0.01 "
    "--set threads=1 --output run ";

TEST_F(TerminalTest, TheLineFitsAndMessagesBeginTheirs) {
  for (const char* const workers : {"--workers 1", "--workers 2"}) {
    for (const unsigned short columns : {80, 40}) {
      fs::remove_all(folder_ / "run");
      ASSERT_EQ(OnTerminal(std::string(kSlow) + "--set epochs=2 " + workers, columns), 0) << raw_;
      EXPECT_EQ(screen_.too_wide(), 0U) << raw_;
      EXPECT_THAT(Statuses(), Contains(HasSubstr(" left"))) << raw_;
      EXPECT_EQ(std::ranges::any_of(Statuses(),
                                    [](const std::string& line) {
                                      return line.find("samples/s") != std::string::npos;
                                    }),
                columns == 80)
          << raw_;
      ExpectWholeLines();
      EXPECT_THAT(screen_.lines(), Contains(ContainsRegex("info .*epoch 1: test ")));
      EXPECT_THAT(screen_.lines(), Contains(HasSubstr("results run")));
    }
  }
}

TEST_F(TerminalTest, AResizeIsFollowed) {
  for (const char* const workers : {"--workers 1", "--workers 2"}) {
    fs::remove_all(folder_ / "run");
    bool resized = false;
    const auto look = [&](int terminal, pid_t) {
      if (resized || !Shows("samples/s")) return;
      resized = true;
      const winsize size = {.ws_row = 24, .ws_col = 40, .ws_xpixel = 0, .ws_ypixel = 0};
      ::ioctl(terminal, TIOCSWINSZ, &size);
      screen_ = Screen(80);  // output in flight is as wide as before
    };
    ASSERT_EQ(OnTerminal(std::string(kSlow) + "--set epochs=2 " + workers, 80, look), 0) << raw_;
    ASSERT_TRUE(resized);
    std::vector<std::string> lines = Statuses();
    ASSERT_GE(lines.size(), 2U) << raw_;
    lines.erase(lines.begin());
    EXPECT_THAT(lines, Each(SizeIs(Le(37U)))) << raw_;
    ExpectWholeLines();
  }
}

// The terminal shows ^C after the status line.
TEST_F(TerminalTest, WhatCtrlCShowsIsWiped) {
  for (const char* const workers : {"--workers 1", "--workers 2"}) {
    fs::remove_all(folder_ / "run");
    bool stopped = false;
    const auto look = [&](int terminal, pid_t) {
      if (stopped || !Shows("samples/s")) return;
      stopped = true;
      EXPECT_EQ(::write(terminal, "\x03", 1), 1);
    };
    const std::string long_run = std::string(kSlow) + "--set epochs=100 " + workers;
    ASSERT_EQ(OnTerminal(long_run, 80, look), 75) << raw_;
    EXPECT_THAT(raw_, HasSubstr("^C"));
    for (const std::string& line : screen_.lines()) EXPECT_THAT(line, Not(HasSubstr("^C"))) << raw_;
    ExpectWholeLines();
  }
}

// Runs until it has shown its progress, however slow the machine is.
TEST_F(TerminalTest, ASimulationShowsHowFarItIs) {
  bool stopped = false;
  const auto look = [&](int terminal, pid_t) {
    if (stopped || !Shows("run 1/4") || !Shows("step ")) return;
    stopped = true;
    EXPECT_EQ(::write(terminal, "\x03", 1), 1);
  };
  EXPECT_EQ(OnTerminal("simulate --config $CONFIGS/quickstart.yaml --set epochs=1000 --workers 2 "
                       "--compare ps_ssp ps_asp --seeds 1,2",
                       60, look),
            130);
  EXPECT_EQ(screen_.too_wide(), 0U) << raw_;
  EXPECT_EQ(screen_.lines().back(), "") << raw_;
}

TEST_F(TerminalTest, ASimulationEndsWithItsTable) {
  const std::string simulate =
      "simulate --config $CONFIGS/quickstart.yaml --set data.train_samples=6400 "
      "--set data.test_samples=100 --set epochs=1 --set cluster.step_seconds=0.01 --workers 2 "
      "--set threads=1 --compare ps_ssp ps_asp --seeds 1,2";
  ASSERT_EQ(OnTerminal(simulate, 60), 0) << raw_;
  EXPECT_EQ(screen_.too_wide(), 0U) << raw_;
  ExpectWholeLines();
  EXPECT_THAT(screen_.lines(), Contains(ContainsRegex("^ps_asp  ")));
  for (const std::string& line : screen_.lines()) EXPECT_THAT(line, SizeIs(Le(100U)));
}

// A signal ends the simulation, and the shell's prompt starts on a new line.
TEST_F(TerminalTest, ASimulationThatIsInterruptedLeavesNoLine) {
  bool stopped = false;
  const auto look = [&](int terminal, pid_t) {
    if (stopped || !Shows("step ")) return;
    stopped = true;
    EXPECT_EQ(::write(terminal, "\x03", 1), 1);
  };
  EXPECT_EQ(OnTerminal("simulate --config $CONFIGS/quickstart.yaml --set epochs=1000", 80, look),
            130);
  EXPECT_EQ(screen_.lines().back(), "") << raw_;
}

}  // namespace
}  // namespace dtrain
