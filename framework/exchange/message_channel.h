// MessageChannel: how messages travel between the actors of different ranks.  Implementations: over any
// Transport (transport_channel.h: mpi, local), and in virtual time (framework/sim).
//
// Reliable; in order from one rank to another.  One thread makes all calls; nothing blocks.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "framework/comm/collective.h"
#include "framework/core/layout.h"
#include "framework/core/short_float.h"
#include "framework/device/blob.h"
#include "framework/strategies/message.h"

namespace dtrain {

constexpr int64_t kDense = -1;

// A version of a vector, or a part of one.  Without a blob it is a size only (ghost runs).
//
// Dense: the range's elements, from `offset` of the blob on.  Sparse: the elements that are not
// zero, and maybe some that are - `entries` positions in the arena (int32, ascending) from `offset`
// on, their values from `offset + stride` on, both in one blob; no blob is needed for no entries.
struct Piece {
  Blob blob;
  int64_t offset = 0;  // of the range's first element, or of the first position, in the blob
  Range range;         // of the arena
  int64_t entries = kDense;
  int64_t stride = 0;
  // Of a dense one, how its values travel: those of 16 bits are rounded so already, so that nothing is
  // lost.  In memory they are floats.
  Wire wire = Wire::kFp32;

  bool sparse() const { return entries != kDense; }
  const float* At(int64_t index) const { return blob.f32() + offset + (index - range.begin); }
  const int32_t* positions() const {
    return blob ? reinterpret_cast<const int32_t*>(blob.f32() + offset) : nullptr;
  }
  const float* values() const { return blob ? blob.f32() + offset + stride : nullptr; }

  // By reference.  Of a sparse ghost, which does not know where its entries are: as many as if they
  // were everywhere alike.
  Piece Part(Range part) const {
    if (!sparse()) {
      return {blob, offset + (part.begin - range.begin), part, kDense, 0, wire};
    }
    const int64_t begin = EntriesBefore(part.begin), end = EntriesBefore(part.end);
    return {blob, offset + begin, part, end - begin, stride};
  }
  // On the wire, and in simulated time.
  int64_t bytes() const {
    constexpr int64_t kEntryBytes = sizeof(int32_t) + sizeof(float);
    return sparse() ? entries * kEntryBytes : range.size() * BytesOf(wire);
  }
  // As dense it would be no larger.
  bool PaysDense() const { return sparse() && 2 * entries >= range.size(); }

 private:
  int64_t EntriesBefore(int64_t index) const {
    if (blob) return std::lower_bound(positions(), positions() + entries, index) - positions();
    const double share = static_cast<double>(index - range.begin) /
                         static_cast<double>(std::max<int64_t>(range.size(), 1));
    return std::llround(share * static_cast<double>(entries));
  }
};

inline int64_t BytesOf(const std::optional<Piece>& piece) { return piece ? piece->bytes() : 0; }

// Actors are numbered from 0; what the drivers themselves say (quiescence.h, stall reports) is kService.
constexpr ActorId kService = -1;

struct Envelope {
  ActorId from = kService;
  ActorId to = kService;
  Rank from_rank = 0;
  Message message;
  std::optional<Piece> piece;
  bool finite = true;  // the sender knows of no NaN or infinity in any weights
};

class MessageChannel {
 public:
  virtual ~MessageChannel() = default;
  virtual void Send(Rank to, Envelope envelope) = 0;
  // The next message that has arrived as a whole.
  virtual std::optional<Envelope> Next() = 0;
  // Something of this rank's is still on its way out or half-way in.
  virtual bool Busy() const = 0;
  // Something of this rank's is still on its way out, and needs Next to be called to leave.
  virtual bool Sending() const { return false; }
  virtual Collective::Traffic traffic() const = 0;
};

}  // namespace dtrain
