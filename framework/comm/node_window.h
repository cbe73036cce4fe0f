// NodeWindow: how ranks of one node see vectors of each other without copying them.
//
// Each rank has a segment of shared memory that all of the node have mapped, and makes Blobs in it
// (New).  It lends one to another rank by telling it where the Blob lies, in a message of the
// caller's; the other borrows it: a Blob of its own that reads that memory.  While somebody has it
// borrowed, the window holds the lender's reference, so that the Blob counts as shared and is not
// written.
//
// How many borrowers a Blob has stands in front of it, in the shared memory.  The lender adds one
// before it sends the message, and a borrower takes itself away when the last of its references
// goes.  That count orders memory as well, whatever carries the message: a borrower that has
// looked at it sees what was written before it was raised, and a lender that finds it at zero may
// write, since all have read.
//
// Memory is reserved before it is used (shared_segment.h).  Where a Blob does not fit any more, New
// returns none, and the caller takes ordinary memory.
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
  int64_t elements = 0;  // of the largest Blob
  int blobs_first = 2;   // of that size: without room for these a rank has no window at all
  int blobs_max = 32;
};

class NodeWindow : public BlobSource, public BlobOwner {
 public:
  // Every rank calls it; `nodes` is the node of each.  The windows of this rank and of those on its
  // node with which it shares memory; null where there are no others, or where one of them cannot
  // have a window, which the lowest of them logs.  The transport is used here only.
  static std::unique_ptr<NodeWindow> Make(Transport& transport, std::span<const int> nodes,
                                          const NodeWindowOptions& options);
  ~NodeWindow();  // all Blobs, lent and borrowed, must be gone

  // Content unspecified.  None when there is no room.
  Blob New(int64_t elements) override;

  // Returns the place of the Blob, for rank `to` to borrow it; none if that rank cannot.  The message that names the
  // place must be sent.
  std::optional<int64_t> Lend(const Blob& blob, Rank to);
  Blob Borrow(Rank from, int64_t place);
  // Drops the references to what nobody has borrowed any more.
  void TakeBack();

  void Return(BlobBody* body) override;

 private:
  struct Head;
  struct Slot;
  struct Borrowed;

  NodeWindow(SharedSegment segment, size_t reserved);
  // Both throw Error with the reason.
  static std::unique_ptr<NodeWindow> Create(const NodeWindowOptions& options);
  void Open(const std::vector<Rank>& inside, Rank self, const std::vector<SegmentPlace>& places);

  Blob Free(int64_t elements);
  Slot* AddSlot(int64_t elements);

  SharedSegment segment_;
  std::map<Rank, SharedSegment> others_;
  size_t used_ = 0;      // of the segment, bytes
  size_t reserved_ = 0;  // from its begin
  bool full_ = false;

  std::mutex mutex_;  // guards all below but lent_
  std::vector<std::unique_ptr<Slot>> slots_;
  std::map<int64_t, std::vector<Slot*>> free_;  // by elements
  std::vector<std::unique_ptr<Borrowed>> borrowed_;
  std::vector<Borrowed*> spare_;
  std::vector<Blob> lent_;  // what somebody may still read
};

}  // namespace dtrain
