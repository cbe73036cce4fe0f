#include "framework/launch/heartbeat.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include "framework/comm/gather.h"
#include "framework/launch/rank_processes.h"

namespace dtrain {
namespace {

constexpr double kBeatSeconds = 0.5;
constexpr double kGraceSeconds = 3;  // the exchange's watch and the launcher report first
constexpr int kGoodbyes = 3;         // sent several times, since a datagram may get lost

int OpenSocket(const std::vector<std::string>& hosts) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const bool is_one = std::ranges::adjacent_find(hosts, std::not_equal_to()) == hosts.end();
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(is_one ? INADDR_LOOPBACK : INADDR_ANY);
  if (fd >= 0 && ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0)
    return fd;
  if (fd >= 0) ::close(fd);
  return -1;
}

HeartbeatPlace PlaceOf(int socket) {
  HeartbeatPlace place;
  sockaddr_in bound = {};
  socklen_t size = sizeof(bound);
  ifaddrs* interfaces = nullptr;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &size) != 0 ||
      ::getifaddrs(&interfaces) != 0) {
    return place;
  }
  for (const ifaddrs* at = interfaces; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
    place.addresses.push_back(reinterpret_cast<const sockaddr_in*>(at->ifa_addr)->sin_addr.s_addr);
  }
  ::freeifaddrs(interfaces);
  place.port = bound.sin_port;
  return ::getrandom(&place.token, sizeof(place.token), 0) == sizeof(place.token)
             ? place
             : HeartbeatPlace{};
}

}  // namespace

Heartbeat::Heartbeat(Transport& transport, double stall_seconds, std::vector<std::string> hosts,
                     std::function<void(const std::string&)> on_lost)
    : rank_(transport.rank()),
      silent_beats_max_(static_cast<int>(
          ((stall_seconds > 0 ? stall_seconds : kStoppedSeconds) + kGraceSeconds) / kBeatSeconds)),
      hosts_(std::move(hosts)),
      on_lost_(std::move(on_lost)),
      socket_(OpenSocket(hosts_)) {
  HeartbeatPlace place;
  if (rank_ == 0 && socket_ >= 0) place = PlaceOf(socket_);
  place_ = FromBytes<HeartbeatPlace>(Broadcast(transport, ToBytes(place)));
  if (socket_ >= 0 && place_.port != 0) {
    thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
  }
}

Heartbeat::~Heartbeat() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
  if (socket_ >= 0) ::close(socket_);
}

// Counts beats, not seconds: while a whole job is stopped (Ctrl-Z, fg), no rank beats.
void Heartbeat::Run(const std::stop_token& stop) {
  pollfd readable = {socket_, POLLIN, 0};
  using Clock = std::chrono::steady_clock;
  auto next = Clock::now();
  while (!stop.stop_requested()) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(next - Clock::now()).count();
    // The poll is short, so that the thread ends soon.
    if (left > 0 && ::poll(&readable, 1, static_cast<int>(std::min<int64_t>(left, 50))) > 0)
      Receive();
    if (Clock::now() < next) continue;
    next = Clock::now() + std::chrono::milliseconds(static_cast<int>(kBeatSeconds * 1000));
    Receive();  // datagrams that arrived while this process was stopped
    if (rank_ != 0) Tell(0);
    const int lost = Lost();
    if (lost < 0) continue;
    return on_lost_(fmt::format(
        "rank {} ({}) did not answer for {:.0f} s: its process is stopped or gone, its host is "
        "down, or "
        "the network between them is cut",
        lost, hosts_.at(static_cast<size_t>(lost)), (silent_beats_max_ + 1) * kBeatSeconds));
  }
  for (int i = 0; i < kGoodbyes; ++i) Tell(1);
}

void Heartbeat::Receive() {
  while (true) {
    HeartbeatDatagram datagram;
    sockaddr_in from = {};
    socklen_t size = sizeof(from);
    const ssize_t bytes = ::recvfrom(socket_, &datagram, sizeof(datagram), MSG_TRUNC,
                                     reinterpret_cast<sockaddr*>(&from), &size);
    if (bytes < 0) return;  // no more datagrams, or a host reports that the port is closed
    const bool known = bytes == sizeof(datagram) && datagram.token == place_.token &&
                       datagram.rank >= 0 && datagram.rank < static_cast<int>(hosts_.size()) &&
                       (datagram.rank == 0) != (rank_ == 0);
    if (!known) continue;
    Peer& peer = peers_[datagram.rank];
    peer.address = from;
    peer.silent_beats = 0;
    peer.left |= datagram.leaves != 0;
    if (rank_ == 0 && !peer.left) Send(from, 0);
  }
}

// Counts one more beat for all peers.  Returns the first rank that has been silent for too long, or -1.
int Heartbeat::Lost() {
  int lost = -1;
  for (auto& [rank, peer] : peers_) {
    if (!peer.left && ++peer.silent_beats > silent_beats_max_ && lost < 0) lost = rank;
  }
  return lost;
}

// Sends a datagram to all peers.  A rank that has received none from rank 0 so far tries all of its addresses.
void Heartbeat::Tell(int32_t leaves) {
  for (const auto& [rank, peer] : peers_) Send(peer.address, leaves);
  if (rank_ == 0 || !peers_.empty()) return;
  for (const uint32_t address : place_.addresses) {
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = place_.port;
    to.sin_addr.s_addr = address;
    Send(to, leaves);
  }
}

// A datagram that cannot be sent counts as lost, without an error.
void Heartbeat::Send(const sockaddr_in& address, int32_t leaves) {
  const HeartbeatDatagram datagram = {place_.token, rank_, leaves};
  ::sendto(socket_, &datagram, sizeof(datagram), MSG_NOSIGNAL,
           reinterpret_cast<const sockaddr*>(&address), sizeof(address));
}

}  // namespace dtrain
