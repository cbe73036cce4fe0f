// Heartbeat: watches whether the other ranks' processes run and can be reached, whatever they are doing.
//
// Between steps a rank may be silent for long and for good reason: it loads data, evaluates or writes.  MPI cannot tell
// that from a host that is off, a link that is cut or a process that was stopped.  So a thread of each rank sends rank
// 0's thread a datagram (UDP, IPv4) every half second and gets one back.  A side that receives nothing for too long
// reports which rank was lost.  In the step loop, the exchange's watch reports first, since it knows which rank waits
// for which (exchange/stall_watch.h); between ranks of one machine, /proc tells more (rank_watch.h).  If all ranks are
// on one host, they use the loopback address alone.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "framework/comm/transport.h"
#include "framework/core/bytes.h"

namespace dtrain {

// Holds the address at which rank 0 listens.
struct HeartbeatPlace {
  std::vector<uint32_t> addresses;  // addresses of all its interfaces, in network order
  uint16_t port = 0;
  // The token is a random number of this run; datagrams of other runs or programs do not have it.
  uint64_t token = 0;
  DTRAIN_FIELDS(addresses, port, token)
};

struct HeartbeatDatagram {
  uint64_t token = 0;
  int32_t rank = 0;    // the sender's
  int32_t leaves = 0;  // 1: the rank leaves, and its silence from now on is no error
};

class Heartbeat {
 public:
  // Collective.  A rank may be silent for `stall_seconds` (kStoppedSeconds if that is 0) and three more, so that
  // watches with more knowledge report first.  `hosts` are the ranks' hosts, for the message.  `on_lost` is called
  // once, on the heartbeat's thread, with the message: "rank 2 (node3) did not answer for 63 s: ...".  Two ranks that
  // have never received a datagram from each other (a firewall) do not watch each other.
  Heartbeat(Transport& transport, double stall_seconds, std::vector<std::string> hosts,
            std::function<void(const std::string&)> on_lost);
  Heartbeat(const Heartbeat&) = delete;
  ~Heartbeat();

 private:
  struct Peer {
    sockaddr_in address = {};
    int silent_beats = 0;
    bool left = false;
  };
  void Run(const std::stop_token& stop);
  void Receive();
  int Lost();
  void Tell(int32_t leaves);
  void Send(const sockaddr_in& address, int32_t leaves);

  const int rank_;
  const int silent_beats_max_;
  const std::vector<std::string> hosts_;
  const std::function<void(const std::string&)> on_lost_;
  const int socket_;  // -1: there is no socket, and no rank is watched
  HeartbeatPlace place_;
  std::map<int, Peer> peers_;  // ranks heard from; rank 0 hears all others, the others hear rank 0
  std::jthread thread_;
};

}  // namespace dtrain
