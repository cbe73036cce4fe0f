// Heartbeat: whether the other ranks' processes run and can be reached, whatever they are doing.
//
// Between steps a rank may be silent for long and for good reason: it loads data, evaluates, writes.  MPI
// cannot tell that from a host that is off, a link that is cut or a process that was stopped.  So a
// thread of each rank sends rank 0's a datagram (UDP, IPv4) every half second and gets one back; a side
// that hears nothing for too long says which rank it lost.  In the step loop the exchange's watch,
// which knows who waits for whom, comes first (exchange/stall_watch.h); of the ranks of one machine
// /proc says more (rank_watch.h).  Ranks whose hosts have one name use the loopback address alone.
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

// Where rank 0 listens.
struct HeartbeatPlace {
  std::vector<uint32_t> addresses;  // of all its interfaces, in network order
  uint16_t port = 0;
  uint64_t token = 0;  // of this run: other runs' datagrams, and anybody's, do not have it
  DTRAIN_FIELDS(addresses, port, token)
};

struct HeartbeatDatagram {
  uint64_t token = 0;
  int32_t rank = 0;    // the sender's
  int32_t leaves = 0;  // 1: its silence from now on is none
};

class Heartbeat {
 public:
  // Collective.  A rank may be silent for `stall_seconds`, or kStoppedSeconds where that is 0, and three
  // more for the watches that know better.  `hosts`: of the ranks, for the message.  `on_lost` is called
  // once, on the heartbeat's thread, with what to say: "rank 2 (node3) did not answer for 63 s: ...".
  // Ranks that have never heard each other (a firewall) go unwatched.
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
  const int socket_;  // -1: there is none, and nobody is watched
  HeartbeatPlace place_;
  std::map<int, Peer> peers_;  // that were heard: rank 0 the others, the others rank 0
  std::jthread thread_;
};

}  // namespace dtrain
