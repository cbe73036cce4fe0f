// LocalWorld: the ranks of a "cluster" as threads of one process.
//
// For the sanitizers, for quick tests, and for a run of one worker, which needs no MPI.  Messages
// are copied straight from the sender's memory into the receiver's; a send completes when its
// message has been received.  A rank whose transport is destroyed is gone: whoever waits for it
// gets PeerLostError.
#pragma once

#include <functional>
#include <memory>

#include "framework/comm/transport.h"

namespace dtrain {

class LocalWorld {
 public:
  explicit LocalWorld(int ranks);
  ~LocalWorld();

  int size() const;

  // The transport of `rank`, to be used by one thread; may outlive the world.  Once a rank.
  std::unique_ptr<Transport> Connect(Rank rank);

  // Declares a rank dead, as if its process had been killed: everyone who waits for it, for a
  // barrier or for a message from anyone gets PeerLostError with this reason.
  void Fail(Rank rank, const std::string& reason);

  // Runs body(transport) in one thread a rank and waits for all.  When bodies throw, the first
  // cause is thrown on: an exception other than PeerLostError before one, then the lowest rank's.
  static void Run(int ranks, const std::function<void(Transport&)>& body);

 private:
  friend class LocalTransport;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace dtrain
