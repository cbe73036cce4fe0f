#include "framework/launch/heartbeat.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "framework/comm/gather.h"
#include "framework/comm/local/local_world.h"
#include "tests/runtime/said.h"

namespace dtrain {
namespace {

using ::testing::HasSubstr;

constexpr double kStall = 0.2;  // seconds; the grace period adds three

// Several ranks in one process, each with its heartbeat.
class HeartbeatTest : public ::testing::Test {
 protected:
  void Start(int rank) {
    beats_[rank].emplace(*transports_[rank], kStall, hosts_, said_[rank].Sink());
  }
  void StartBoth() {
    std::thread other([this] { Start(1); });
    Start(0);
    other.join();
  }

  std::vector<std::string> hosts_ = {"alpha", "beta"};
  LocalWorld world_{2};
  std::unique_ptr<Transport> transports_[2] = {world_.Connect(0), world_.Connect(1)};
  Said said_[2];
  std::optional<Heartbeat> beats_[2];
};

TEST_F(HeartbeatTest, RanksThatBeatAreNotLost) {
  StartBoth();
  std::this_thread::sleep_for(std::chrono::seconds(5));
  EXPECT_EQ(said_[0].Now() + said_[1].Now(), "");
}

// Returns the addresses to which UDP sockets of this process are bound.
std::set<std::string> BoundAddresses() {
  std::set<std::string> addresses;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    int type = 0;
    sockaddr_in bound = {};
    socklen_t size = sizeof(type), bytes = sizeof(bound);
    if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_DGRAM) continue;
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &bytes) != 0) continue;
    if (bound.sin_family == AF_INET) addresses.insert(::inet_ntoa(bound.sin_addr));
  }
  return addresses;
}

// If all ranks are on one machine, their sockets accept nothing from other machines.
TEST_F(HeartbeatTest, RanksOfOneMachineListenToItAlone) {
  hosts_ = {"alpha", "alpha"};
  StartBoth();
  EXPECT_EQ(BoundAddresses(), std::set<std::string>{"127.0.0.1"});
}

TEST_F(HeartbeatTest, ARankThatHasSaidGoodByeIsNotLost) {
  StartBoth();
  std::this_thread::sleep_for(std::chrono::seconds(1));
  beats_[1].reset();
  EXPECT_EQ(said_[0].Within(4), "");
}

// A hand-made peer of rank `rank`'s heartbeat.
class HandMade {
 public:
  HandMade(Transport& transport, int rank) : rank_(rank) {
    timeval wait = {2, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    sockaddr_in here = {};
    here.sin_family = AF_INET;
    here.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&here), sizeof(here)), 0);
    socklen_t size = sizeof(here);
    ::getsockname(socket_, reinterpret_cast<sockaddr*>(&here), &size);
    HeartbeatPlace mine = {{here.sin_addr.s_addr}, here.sin_port, 815};
    place_ = FromBytes<HeartbeatPlace>(Broadcast(transport, ToBytes(mine)));
  }
  ~HandMade() { ::close(socket_); }

  void Send(uint64_t token, int32_t leaves = 0) {
    const HeartbeatDatagram datagram = {token, rank_, leaves};
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = place_.port;
    to.sin_addr.s_addr = place_.addresses.at(0);
    EXPECT_EQ(::sendto(socket_, &datagram, sizeof(datagram), 0, reinterpret_cast<sockaddr*>(&to),
                       sizeof(to)),
              static_cast<ssize_t>(sizeof(datagram)));
  }
  std::optional<HeartbeatDatagram> Receive(sockaddr_in* from = nullptr) {
    HeartbeatDatagram datagram;
    sockaddr_in ignored = {};
    socklen_t size = sizeof(ignored);
    const ssize_t bytes =
        ::recvfrom(socket_, &datagram, sizeof(datagram), 0,
                   reinterpret_cast<sockaddr*>(from != nullptr ? from : &ignored), &size);
    if (bytes != sizeof(datagram)) return std::nullopt;
    return datagram;
  }
  void Answer(const sockaddr_in& to) {
    const HeartbeatDatagram datagram = {place_.token, rank_, 0};
    ::sendto(socket_, &datagram, sizeof(datagram), 0, reinterpret_cast<const sockaddr*>(&to),
             sizeof(to));
  }
  uint64_t token() const { return place_.token; }

 private:
  const int rank_;
  const int socket_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  HeartbeatPlace place_;
};

TEST_F(HeartbeatTest, RankZeroLosesARankThatFallsSilent) {
  std::optional<HandMade> other;
  std::thread start([&] { other.emplace(*transports_[1], 1); });
  Start(0);
  start.join();
  other->Send(other->token() + 1);  // the token of another run
  EXPECT_FALSE(other->Receive());
  other->Send(other->token());
  const std::optional<HeartbeatDatagram> answer = other->Receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->token, other->token());
  EXPECT_EQ(answer->rank, 0);
  EXPECT_THAT(said_[0].Within(8), HasSubstr("rank 1 (beta) did not answer for"));
}

TEST_F(HeartbeatTest, RankZeroKnowsWhoLeft) {
  std::optional<HandMade> other;
  std::thread start([&] { other.emplace(*transports_[1], 1); });
  Start(0);
  start.join();
  other->Send(other->token());
  other->Send(other->token(), 1);
  EXPECT_EQ(said_[0].Within(5), "");
}

TEST_F(HeartbeatTest, ARankLosesRankZeroThatFallsSilent) {
  std::optional<HandMade> zero;
  std::thread start([&] { Start(1); });
  zero.emplace(*transports_[0], 0);
  start.join();
  sockaddr_in from = {};
  const std::optional<HeartbeatDatagram> heard = zero->Receive(&from);
  ASSERT_TRUE(heard);
  EXPECT_EQ(heard->rank, 1);
  zero->Answer(from);
  EXPECT_THAT(said_[1].Within(8), HasSubstr("rank 0 (alpha) did not answer for"));
}

// A firewall may block the messages: a rank that never received one does not watch that peer.
TEST_F(HeartbeatTest, WhoWasNeverHeardIsNotWatched) {
  std::optional<HandMade> zero;
  std::thread start([&] { Start(1); });
  zero.emplace(*transports_[0], 0);
  start.join();
  EXPECT_EQ(said_[1].Within(5), "");
}

}  // namespace
}  // namespace dtrain
