// Transport: sends bytes between ranks.  It is one narrow interface with several implementations
// (mpi/, local/), which all pass one conformance suite (tests/comm/transport_conformance.h).
//
// The contract is MPI's, no stronger: reliable; in order per (pair, tag); no order between pairs;
// messages of any size (over 2 GiB included); a send may complete before it is received.  One
// thread makes all calls of a Transport.  No call blocks except Barrier.  Callers that wait poll
// and back off (backoff.h), so that more ranks than cores work.
//
// Errors: if a peer is gone and the implementation can detect it (local/), calls withdraw all
// requests of this rank and throw PeerLostError.  Under MPI the launcher ends the job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace dtrain {

using Rank = int;

// Tags name separate streams of messages between a pair of ranks.  Messages with the same tag do
// not overtake one another; different tags are independent.
enum class Tag : int {
  kControl = 1,     // small messages between actors or drivers, any-source
  kCollective = 2,  // small fixed exchanges of all ranks at set-up and at boundaries (gather.h)
  kBulk = 3,        // everything else between two known ranks, such as vectors (TransportChannel)
  kSparse = 4,      // sums of sparse selections (sparse_collective.h), one after the other
  kPeer = 5,        // what a rank may do with the device memory of another (peer_collective.h)
  // From kCollectiveStream on: moves of collectives, a stream for each chunk in flight.
  kCollectiveStream = 16,
};

// Returns the stream of the sequence-th chunk of this transport's collectives.  Chunks in flight
// must not wait for one another, so consecutive ones get different streams.  A stream is used again
// only after kCollectiveStreams chunks.
constexpr int kCollectiveStreams = 4096;
constexpr Tag CollectiveTag(int64_t sequence) {
  return static_cast<Tag>(static_cast<int>(Tag::kCollectiveStream) +
                          static_cast<int>(sequence % kCollectiveStreams));
}

// A send or receive in flight.  A Transport returns it; it ends when Test returns true.
struct Request {
  int slot = -1;
  bool active() const { return slot >= 0; }
};

struct Incoming {
  Rank from = 0;
  size_t bytes = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;

  virtual Rank rank() const = 0;
  virtual int size() const = 0;
  virtual std::string name() const = 0;  // "mpi", "local"

  // The memory must stay valid and unchanged until Test returns true.
  virtual Request Send(Rank to, Tag tag, std::span<const std::byte> data) = 0;
  // Receives exactly data.size() bytes.  A message of another size is a bug of the program
  // (DT_CHECK).
  virtual Request Receive(Rank from, Tag tag, std::span<std::byte> data) = 0;
  // Returns true once the request is complete, and makes it inactive.  Also advances all other
  // requests.
  virtual bool Test(Request& request) = 0;

  // Returns the next message of `tag` that waits to be received, from any rank; fetch it with
  // Receive.
  virtual std::optional<Incoming> Probe(Tag tag) = 0;

  virtual void Barrier() = 0;

  // A rank that ends with an error calls it.  Afterwards no other rank accesses this rank's memory
  // for its requests in flight, and these never complete.  If a lost rank ends the whole job (MPI),
  // it does nothing.
  virtual void Withdraw() {}

  // Returns the ranks that share memory with this rank (one node), ascending, this one included.
  virtual const std::vector<Rank>& node_ranks() const = 0;
};

}  // namespace dtrain
