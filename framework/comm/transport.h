// Transport: how ranks exchange bytes.  One narrow interface, several honest implementations (mpi/,
// local/), one conformance suite over all of them (tests/comm/transport_conformance.h).
//
// The contract is MPI's, no stronger: reliable; in order per (pair, tag); no order between pairs;
// messages of any size (over 2 GiB included); a send may complete before it is received.  One
// thread makes all calls of a Transport.  Nothing here blocks except Barrier; whoever waits polls
// and backs off (backoff.h), so that more ranks than cores work.
//
// Errors: a peer that is gone raises PeerLostError where the implementation can know (local/), and
// withdraws what this rank has in flight; under MPI the launcher ends the job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace dtrain {

using Rank = int;

// Separate streams of messages between a pair: no message of one tag overtakes another of the same
// tag; different tags are independent.
enum class Tag : int {
  kControl = 1,     // small actor messages, any-source
  kCollective = 2,  // small fixed exchanges of all ranks (start-up agreement, quiescence)
  kBulk = 3,        // everything else between two known ranks
  kSparse = 4,      // sums of sparse selections (sparse_collective.h), one after the other
  // From kCollectiveStream on: moves of collectives, a stream for each chunk in flight.
  kCollectiveStream = 16,
};

// The stream of the sequence-th chunk that this transport's collectives move.  Chunks in flight
// must not wait for one another, so neighbours get different streams; a stream is used again long
// after.
constexpr int kCollectiveStreams = 4096;
constexpr Tag CollectiveTag(int64_t sequence) {
  return static_cast<Tag>(static_cast<int>(Tag::kCollectiveStream) +
                          static_cast<int>(sequence % kCollectiveStreams));
}

// A send or receive in flight.  Obtained from a Transport, given back to it by Test returning true.
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

  // The memory must stay valid and untouched until Test says so.
  virtual Request Send(Rank to, Tag tag, std::span<const std::byte> data) = 0;
  // Receives exactly data.size() bytes; a message of another size is our own fault (DT_CHECK).
  virtual Request Receive(Rank from, Tag tag, std::span<std::byte> data) = 0;
  // True once complete (the request then becomes inactive); also moves everything else along.
  virtual bool Test(Request& request) = 0;

  // The next message of `tag` waiting to be received, from any rank; fetch it with Receive.
  virtual std::optional<Incoming> Probe(Tag tag) = 0;

  virtual void Barrier() = 0;

  // For a rank that ends with an error: afterwards nobody reads or writes this rank's memory for
  // what was in flight, and its requests never complete.  Where a lost rank ends the whole job
  // (MPI) there is nothing to do.
  virtual void Withdraw() {}

  // Ranks that share this rank's memory (one node), in order, this one included.
  virtual const std::vector<Rank>& node_ranks() const = 0;
};

}  // namespace dtrain
