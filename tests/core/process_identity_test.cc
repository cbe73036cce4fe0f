#include "framework/core/process_identity.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

namespace dtrain {
namespace {

// A child process that waits until it is killed, and its identity.
class Child {
 public:
  Child() {
    std::array<int, 2> ends = {};
    if (::pipe(ends.data()) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      const std::string text = ToText(IdentityOfThisProcess().value());
      if (::write(ends[1], text.data(), text.size()) < 0) ::_exit(1);
      ::alarm(60);
      while (true) ::pause();
    }
    std::array<char, 4096> text = {};
    const ssize_t bytes = ::read(ends[0], text.data(), text.size());
    identity_ =
        ParseIdentity({text.data(), static_cast<size_t>(std::max<ssize_t>(bytes, 0))}).value();
    ::close(ends[0]);
    ::close(ends[1]);
  }
  void Kill() const {
    ::kill(pid_, SIGKILL);
    siginfo_t info = {};
    ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
  }
  void Reap() const { ::waitpid(pid_, nullptr, 0); }
  const ProcessIdentity& identity() const { return identity_; }

 private:
  pid_t pid_ = 0;
  ProcessIdentity identity_;
};

TEST(ProcessIdentity, AProcessHasEndedWhenItIsAZombieOrGone) {
  const Child child;
  EXPECT_EQ(child.identity().host, IdentityOfThisProcess()->host);
  EXPECT_FALSE(HasEnded(child.identity()));
  child.Kill();
  EXPECT_TRUE(HasEnded(child.identity())) << "a zombie";
  child.Reap();
  EXPECT_TRUE(HasEnded(child.identity()));
}

TEST(ProcessIdentity, ANumberUsedAgainIsAnotherProcess) {
  ProcessIdentity self = IdentityOfThisProcess().value();
  EXPECT_FALSE(HasEnded(self));
  self.born += 1;
  EXPECT_TRUE(HasEnded(self));
}

TEST(ProcessIdentity, OfOtherHostsBootsAndNamespacesNothingIsKnown) {
  const Child child;
  child.Kill();
  child.Reap();
  const ProcessIdentity gone = child.identity();
  ASSERT_TRUE(HasEnded(gone));
  for (const auto member :
       {&ProcessIdentity::host, &ProcessIdentity::boot, &ProcessIdentity::namespaces}) {
    ProcessIdentity other = gone;
    other.*member += "0";
    EXPECT_FALSE(HasEnded(other)) << ToText(other);
  }
}

TEST(ProcessIdentity, ATextIsTakenWholeOrNotAtAll) {
  const std::string text = ToText(IdentityOfThisProcess().value());
  const size_t whole = text.find('}') + 1;
  for (size_t bytes = 0; bytes < whole; ++bytes) {
    EXPECT_FALSE(ParseIdentity(text.substr(0, bytes)).has_value()) << bytes;
  }
  const ProcessIdentity read = ParseIdentity(text).value();
  EXPECT_EQ(ToText(read), text);
  EXPECT_EQ(read.pid, ::getpid());
}

}  // namespace
}  // namespace dtrain
