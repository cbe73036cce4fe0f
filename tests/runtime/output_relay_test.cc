#include "framework/launch/output_relay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "framework/core/log.h"
#include "framework/core/status_line.h"

namespace dtrain {
namespace {

using testing::HasSubstr;
using testing::Not;

// stderr and stdout are a terminal while this object lives.
class Terminal {
 public:
  explicit Terminal(unsigned short columns) : before_{::dup(1), ::dup(2)} {
    const winsize size = {.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    int terminal = -1;
    EXPECT_EQ(::openpty(&screen_, &terminal, nullptr, nullptr, &size), 0);
    for (const int fd : {1, 2}) ::dup2(terminal, fd);
    ::close(terminal);
    ::setenv("TERM", "xterm", 1);
    ::setenv("NO_COLOR", "1", 1);
  }
  ~Terminal() {
    status_line::Clear();  // otherwise the next test's text would erase the line
    for (const int fd : {1, 2}) {
      ::dup2(before_[fd - 1], fd);
      ::close(before_[fd - 1]);
    }
    ::close(screen_);
    ::unsetenv("NO_COLOR");
  }
  Terminal(const Terminal&) = delete;

  void Resize(unsigned short columns) const {
    const winsize size = {.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    ::ioctl(screen_, TIOCSWINSZ, &size);
  }
  // Writes a mark and returns all text before it.
  std::string Text() const {
    EXPECT_EQ(::write(2, "@", 1), 1);
    std::string text;
    for (char c = 0; ::read(screen_, &c, 1) == 1 && c != '@';) text += c;
    return text;
  }

 private:
  int screen_ = -1;
  int before_[2];
};

const std::vector<status_line::Part> kSteps = {{"step 7/9", 1}, {"nine seconds left", 0}};
constexpr char kShown[] = "\r\x1b[Kstep 7/9  nine seconds left";

TEST(RecordReader, LetsTextThroughAndShowsTheLines) {
  RecordReader reader;
  EXPECT_EQ(reader.Take("a\nb"), "a\nb");
  const std::string record = status_line::Encode(kSteps);
  EXPECT_EQ(reader.Take("c" + record.substr(0, 5)), "c");
  EXPECT_EQ(reader.Take(record.substr(5) + "d\n" + record + record), "d\n");
  // Text that is no record may be, or contain, the output of another rank.
  EXPECT_EQ(reader.Take(std::string(1, status_line::kRecord) + "no record\ne"), "no record\ne");
}

TEST(RecordReader, ARecordWithoutAnEndIsGivenUp) {
  RecordReader reader;
  EXPECT_EQ(reader.Take(status_line::kRecord + std::string(10'000, 'x') + "\n"),
            std::string(10'000, 'x') + "\n");
  EXPECT_EQ(reader.Take("text\n"), "text\n");
  EXPECT_EQ(reader.TakeRest(), "");
  EXPECT_EQ(reader.Take(status_line::kRecord + std::string("the last word")), "");
  EXPECT_EQ(reader.TakeRest(), "the last word");
  EXPECT_EQ(reader.TakeRest(), "");
}

// mpirun may forward a record in several parts, with the text of another rank between them.
TEST(RecordReader, TextWithinARecordIsNotLost) {
  const std::string record = status_line::Encode(kSteps);
  for (size_t cut = 1; cut < record.size(); ++cut) {
    RecordReader reader;
    std::string text = reader.Take(record.substr(0, cut));
    text += reader.Take("rank 1: out of memory\n");
    text += reader.Take(record.substr(cut) + "next\n" + record);
    EXPECT_THAT(text, HasSubstr("rank 1: out of memory\n")) << cut;
    EXPECT_THAT(text, testing::EndsWith("\nnext\n")) << cut;
    EXPECT_THAT(text, Not(testing::ContainsRegex("[\x1c-\x1f]"))) << cut;
    EXPECT_EQ(reader.TakeRest(), "") << cut;
  }
}

TEST(RecordReader, ARecordBehindHalfARecordIsShown) {
  const Terminal terminal(80);
  RecordReader reader;
  const std::string record = status_line::Encode(kSteps);
  const std::string text = reader.Take(record.substr(0, 20) + "word" + record);
  EXPECT_THAT(text, testing::EndsWith("word\n"));
  EXPECT_EQ(terminal.Text(), kShown);
}

TEST(StatusLineOnATerminal, TextWipesItAndItFollowsTheWidth) {
  const Terminal terminal(80);
  status_line::Show(kSteps);
  EXPECT_EQ(terminal.Text(), kShown);
  terminal.Resize(20);
  status_line::Show(kSteps);
  EXPECT_EQ(terminal.Text(), "\r\x1b[Kstep 7/9");
  log::Info("a message");
  EXPECT_THAT(terminal.Text(), testing::ContainsRegex("^\r\x1b\\[K[0-9:]+ info a message\r\n$"));
  log::Info("another");
  EXPECT_THAT(terminal.Text(), Not(HasSubstr("\x1b[K"))) << "there is nothing to wipe";
  status_line::Show(kSteps);
  status_line::Pass(1, "a result\n");
  EXPECT_EQ(terminal.Text(), "\r\x1b[Kstep 7/9\r\x1b[Ka result\r\n");
}

TEST(StatusLineOnATerminal, IsNotShownBehindUnfinishedText) {
  const Terminal terminal(80);
  status_line::Pass(2, "half a ");
  status_line::Show(kSteps);
  status_line::Pass(2, "line");
  EXPECT_EQ(terminal.Text(), "half a line");
  log::Info("a message");
  EXPECT_THAT(terminal.Text(), testing::StartsWith("\r\n")) << "which begins a line of its own";
  status_line::Show(kSteps);
  EXPECT_EQ(terminal.Text(), kShown);
  status_line::Clear();
  EXPECT_EQ(terminal.Text(), "\r\x1b[K");
}

TEST(StatusLineOnATerminal, AnInterruptIsWiped) {
  const Terminal terminal(80);
  status_line::NoteInterrupt();
  log::Info("stopping");
  EXPECT_THAT(terminal.Text(), testing::StartsWith("\r\x1b[K"));
  status_line::Show(kSteps);
  terminal.Text();
  status_line::WipeAtOnce();
  status_line::WipeAtOnce();
  EXPECT_EQ(terminal.Text(), "\r\x1b[K");
}

TEST(OutputRelay, BringsWhatProgramsWriteToTheTerminal) {
  const Terminal terminal(80);
  auto relay = OutputRelay::ToTerminal();
  ASSERT_NE(relay, nullptr);
  const std::string text = status_line::Encode(kSteps) + "a message\n";
  ASSERT_EQ(::write(relay->err(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  relay->Start();
  relay.reset();
  EXPECT_EQ(terminal.Text(), std::string(kShown) + "\r\x1b[Ka message\r\n");
  auto out = OutputRelay::ToTerminal();
  ASSERT_EQ(::write(out->out(), "result\n", 7), 7);
  out->Start();
  out.reset();
  EXPECT_EQ(terminal.Text(), "result\r\n");
}

TEST(OutputRelay, IsNotNeededWithoutATerminal) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(OutputRelay::ToTerminal(), nullptr);
  testing::internal::GetCapturedStderr();
}

}  // namespace
}  // namespace dtrain
