// TransportChannel: messages over a Transport.  A message is a header (Tag::kControl, any source).
// If a vector is sent with it, its bytes follow (Tag::kBulk) and are received directly into a Blob:
// the elements of a dense vector, in 16 bits if VectorSlice::wire says so, or the positions and
// then the values of a sparse one.  If both ranks share a window (comm/node_window.h) and the
// vector is in it, the header has its place there, and no bytes follow.
#pragma once

#include <deque>
#include <list>
#include <string>
#include <vector>

#include "framework/comm/node_window.h"
#include "framework/comm/transport.h"
#include "framework/device/blob.h"
#include "framework/exchange/message_channel.h"

namespace dtrain {

class TransportChannel : public MessageChannel {
 public:
  // The arguments outlive the channel.  `window` may be null.
  TransportChannel(Transport& transport, BlobPools& pools, NodeWindow* window = nullptr);
  ~TransportChannel() override;

  void Send(Rank to, Envelope envelope) override;
  std::optional<Envelope> Next() override;
  bool Busy() const override { return Sending() || arriving_ > 0; }
  bool Sending() const override { return !sends_.empty(); }
  Collective::Traffic traffic() const override { return traffic_; }

 private:
  struct Outgoing {
    std::string header;
    std::optional<VectorSlice> slice;
    std::vector<uint16_t> short_floats;  // values of a slice that is sent in 16 bits
    Request header_request;
    std::vector<Request> slice_requests;
  };
  struct Arriving {
    Envelope envelope;
    std::vector<Request> requests;  // receives of the slice
  };

  void SendVector(Rank to, Outgoing& sending);
  void ReceiveVector(Rank from, Arriving& arriving);
  void Complete(Envelope& envelope);
  bool AllDone(std::vector<Request>& requests);
  void ForgetSent();
  void ReceiveHeaders();
  void ReceiveHeader(const Incoming& incoming);

  Transport& transport_;
  BlobPools& pools_;
  NodeWindow* const window_;
  std::list<Outgoing> sends_;                // in order; a list, since headers must not move
  std::vector<std::deque<Arriving>> inbox_;  // by sending rank, in order
  int arriving_ = 0;                         // messages in inbox_
  size_t next_rank_ = 0;                     // the rank to look at next; prevents starvation
  Collective::Traffic traffic_;
};

}  // namespace dtrain
