// NodeWindow: lets ranks of one node read each other's vectors in shared memory, without copies.
//
// Each rank has a segment of shared memory that all ranks of the node have mapped, and makes Blobs
// in it (New).  To share one, the owner calls Lend and sends the Blob's place to another rank, in a
// message of the caller.  The other rank calls Borrow and gets a Blob of its own that reads that
// memory.  While a Blob is borrowed, the owner's window holds a reference to it, so that it counts
// as shared and is not written.
//
// The number of borrowers of a Blob is stored in front of it, in the shared memory.  The owner
// increments it before it sends the message.  A borrower decrements it when the last of its
// references is dropped.  This count also orders memory accesses, for any transport of the message:
// a borrower that has read the count sees everything that was written before it was incremented,
// and an owner that finds it at zero may write, since all borrowers have finished reading.
//
// Memory is reserved before it is used (shared_segment.h).  If there is no room for a Blob, New
// returns an empty one, and the caller uses ordinary memory.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/comm/shared_segment.h"
#include "framework/comm/transport.h"
#include "framework/device/blob.h"

namespace dtrain {

struct NodeWindowOptions {
  int64_t elements = 0;  // size of the largest Blob
  int blobs_first = 2;   // Blobs of that size that must fit, or there is no window
  int blobs_max = 32;    // Blobs of that size that the segment has addresses for
};

class NodeWindow final : public BlobSource, public BlobOwner {
 public:
  // Makes the window of this rank and opens those of the ranks on its node with which it shares
  // memory.  It is a collective call; `nodes` has the node of each rank.  Returns null if there are
  // no such ranks, or if one of them cannot make a window, which the lowest of them logs.  The
  // transport is used only during this call.
  static std::unique_ptr<NodeWindow> Make(Transport& transport, std::span<const int> nodes,
                                          const NodeWindowOptions& options);
  ~NodeWindow();  // all Blobs, own and borrowed, must have been destroyed

  // Returns a Blob with unspecified content; an empty one if there is no room.
  Blob New(int64_t elements) override;

  // Returns the place of the Blob, for rank `to` to borrow it; none if that rank cannot.  After
  // that, the message with the place must be sent.
  std::optional<int64_t> Lend(const Blob& blob, Rank to);
  Blob Borrow(Rank from, int64_t place);
  // Drops the references to Blobs that have no borrowers any more.
  void TakeBack();

  void Return(BlobBody* body) override;

 private:
  struct Head;
  struct Slot;
  struct Borrowed;

  NodeWindow(SharedSegment segment, size_t reserved);
  // Create and Open throw Error with the reason.
  static std::unique_ptr<NodeWindow> Create(const NodeWindowOptions& options);
  void Open(const std::vector<Rank>& inside, Rank self, const std::vector<SegmentPlace>& places);

  Blob Free(int64_t elements);
  Slot* AddSlot(int64_t elements);

  SharedSegment segment_;
  std::map<Rank, SharedSegment> others_;
  size_t used_ = 0;      // bytes of the segment in use, from its begin
  size_t reserved_ = 0;  // bytes of the segment that are reserved, from its begin
  bool full_ = false;

  std::mutex mutex_;  // guards all members below except lent_
  std::vector<std::unique_ptr<Slot>> slots_;
  std::map<int64_t, std::vector<Slot*>> free_;  // by number of elements
  std::vector<std::unique_ptr<Borrowed>> borrowed_;
  std::vector<Borrowed*> spare_;
  std::vector<Blob> lent_;  // Blobs that other ranks may still read
};

}  // namespace dtrain
