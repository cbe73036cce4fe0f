// LocalWorld: the ranks of a "cluster" as threads of one process.
//
// It is used with sanitizers, in quick tests, and by a run with one worker, which needs no MPI.
// Messages are copied directly from the sender's memory into the receiver's; a send completes when
// its message has been received.  A rank whose transport is destroyed is gone, and ranks that wait
// for it get PeerLostError.
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

  // Returns the transport of `rank`, to be used by one thread; it may outlive the world.  Call it
  // once per rank.
  std::unique_ptr<Transport> Connect(Rank rank);

  // Declares a rank dead, as if its process had been killed.  Ranks that wait for it, for a barrier
  // or for a message from any rank get PeerLostError with this reason.
  void Fail(Rank rank, const std::string& reason);

  // Runs body(transport) in one thread per rank and waits for all.  If bodies throw, one exception
  // is rethrown: preferably one that is not a PeerLostError, then that of the lowest rank.
  static void Run(int ranks, const std::function<void(Transport&)>& body);

 private:
  friend class LocalTransport;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace dtrain
