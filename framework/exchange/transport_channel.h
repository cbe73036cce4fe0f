// TransportChannel: messages over a Transport.  A message is a header (Tag::kControl, any source) and,
// when a vector rides with it, its bytes (Tag::kBulk) received straight into a Blob: the elements,
// or of a sparse one its positions and then its values; those of 16 bits (Piece::wire) as such.  Where the ranks have a window to each other
// (comm/node_window.h) and the vector lies in it, the header says where, and no bytes follow.
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
  // All outlive the channel.  `window`: null where there is none.
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
    std::optional<Piece> piece;
    std::vector<uint16_t> short_floats;  // of a piece that travels so
    Request header_request;
    std::vector<Request> piece_requests;
  };
  struct Arriving {
    Envelope envelope;
    std::vector<Request> requests;  // of the piece
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
  std::list<Outgoing> sends_;                // in order; their headers must not move
  std::vector<std::deque<Arriving>> inbox_;  // by sending rank, in order
  int arriving_ = 0;                         // messages in inbox_
  size_t next_rank_ = 0;                     // whose turn it is, so that no rank is starved
  Collective::Traffic traffic_;
};

}  // namespace dtrain
