// Mail: how letters travel between the actors of different ranks.  Implementations: over any
// Transport (transport_mail.h: mpi, local), and in virtual time (framework/sim).
//
// Reliable; in order from one rank to another.  One thread makes all calls; nothing blocks.
#pragma once

#include <optional>

#include "framework/comm/collective.h"
#include "framework/device/blob.h"
#include "framework/strategies/message.h"

namespace dtrain {

// A version of a vector, or a part of one.  Without a blob it is a size only (ghost runs).
struct Piece {
  Blob blob;
  int64_t offset = 0;  // of the range's first element in the blob
  Range range;         // of the arena

  const float* At(int64_t index) const { return blob.f32() + offset + (index - range.begin); }
  Piece Part(Range part) const { return {blob, offset + (part.begin - range.begin), part}; }
  int64_t bytes() const { return range.size() * static_cast<int64_t>(sizeof(float)); }
};

// Actors are numbered from 0; what the drivers themselves say (rest.h, stall reports) is kService.
constexpr ActorId kService = -1;

struct Letter {
  ActorId from = kService;
  ActorId to = kService;
  Rank from_rank = 0;
  Message message;
  std::optional<Piece> piece;
  bool finite = true;  // the sender knows of no NaN or infinity in any weights
};

class Mail {
 public:
  virtual ~Mail() = default;
  virtual void Send(Rank to, Letter letter) = 0;
  // The next letter that has arrived as a whole.
  virtual std::optional<Letter> Next() = 0;
  // Something of this rank's is still on its way out or half-way in.
  virtual bool Busy() const = 0;
  // Something of this rank's is still on its way out, and needs Next to be called to leave.
  virtual bool Sending() const { return false; }
  virtual Collective::Traffic traffic() const = 0;
};

}  // namespace dtrain
