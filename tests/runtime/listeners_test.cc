#include "framework/launch/listeners.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <set>

#include "tests/runtime/doors.h"

namespace dtrain {
namespace {

TEST(CloseListeners, LetsNobodyElseIn) {
  const Door lent("127.0.0.1");
  // Includes the sockets of the process that started the tests.
  const std::set<ino_t> spared = SocketsOf(::getpid());
  const Door wide("0.0.0.0"), local("127.0.0.1");
  const Visitor before(wide);
  ASSERT_TRUE(before.IsIn());
  const int inside = wide.Accept();
  if (CloseListeners(::getpid(), Listeners::kOnEveryAddress, spared) == 0) {
    ::close(inside);
    GTEST_SKIP() << "the system lets no process have another's sockets";
  }
  EXPECT_FALSE(Visitor(wide).IsIn());
  EXPECT_TRUE(Visitor(local).IsIn());
  EXPECT_GE(CloseListeners(::getpid(), Listeners::kAll, spared), 2);
  EXPECT_FALSE(Visitor(local).IsIn());
  EXPECT_TRUE(Visitor(lent).IsIn());
  EXPECT_TRUE(before.Say("hello")) << "who is in goes on";
  char text[6] = {};
  EXPECT_EQ(::recv(inside, text, 5, MSG_WAITALL), 5);
  EXPECT_STREQ(text, "hello");
  ::close(inside);
}

}  // namespace
}  // namespace dtrain
