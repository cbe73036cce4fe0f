// MessageChannel: carries messages between the actors of different ranks.  TransportChannel works
// over any Transport (mpi, local), SimChannel (framework/sim) in virtual time.
//
// Delivery is reliable, and in order for each pair of ranks.  One thread makes all calls, and no
// call blocks.
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

// Describes a version of a vector, or a part of one.  Without a blob it is a size only (ghost
// runs).
//
// A dense slice has the range's elements, beginning at `offset` of the blob.  A sparse slice has
// all elements that are not zero, and perhaps some that are: `entries` positions in the arena
// (int32, ascending) begin at `offset`, and their values at `offset + stride` of the same blob.  A
// sparse slice without entries needs no blob.
struct VectorSlice {
  Blob blob;
  int64_t offset = 0;  // index in the blob of the range's first element, or of the first position
  Range range;         // part of the arena that the slice covers
  int64_t entries = kDense;
  int64_t stride = 0;
  // The values of a dense slice are sent in this number format.  In memory they are floats; those
  // sent in 16 bits are rounded already, so the conversion loses nothing.
  Wire wire = Wire::kFp32;

  bool sparse() const { return entries != kDense; }
  const float* At(int64_t index) const { return blob.f32() + offset + (index - range.begin); }
  const int32_t* positions() const {
    return blob ? reinterpret_cast<const int32_t*>(blob.f32() + offset) : nullptr;
  }
  const float* values() const { return blob ? blob.f32() + offset + stride : nullptr; }

  // Returns a part of the slice, by reference.  A sparse ghost does not know the positions of its
  // entries, so the part gets a share of them proportional to its size.
  VectorSlice Part(Range part) const {
    if (!sparse()) {
      return {blob, offset + (part.begin - range.begin), part, kDense, 0, wire};
    }
    const int64_t begin = EntriesBefore(part.begin), end = EntriesBefore(part.end);
    return {blob, offset + begin, part, end - begin, stride};
  }
  // Bytes sent over the network; simulated time depends on them too.
  int64_t bytes() const {
    constexpr int64_t kEntryBytes = sizeof(int32_t) + sizeof(float);
    return sparse() ? entries * kEntryBytes : range.size() * BytesOf(wire);
  }
  // True if the slice is sparse and would be no larger as a dense one.
  bool PaysDense() const { return sparse() && 2 * entries >= range.size(); }

 private:
  int64_t EntriesBefore(int64_t index) const {
    if (blob) return std::lower_bound(positions(), positions() + entries, index) - positions();
    const double share = static_cast<double>(index - range.begin) /
                         static_cast<double>(std::max<int64_t>(range.size(), 1));
    return std::llround(share * static_cast<double>(entries));
  }
};

inline int64_t BytesOf(const std::optional<VectorSlice>& slice) {
  return slice ? slice->bytes() : 0;
}

// Address of messages between drivers (service.h).  Actors are numbered from 0.
constexpr ActorId kService = -1;

struct Envelope {
  ActorId from = kService;
  ActorId to = kService;
  Rank from_rank = 0;
  Message message;
  std::optional<VectorSlice> slice;
  bool finite = true;  // false if the sender knows of a NaN or infinity in any weights
};

class MessageChannel {
 public:
  virtual ~MessageChannel() = default;
  virtual void Send(Rank to, Envelope envelope) = 0;
  // Returns the next message that has arrived completely, and lets messages in flight proceed.
  virtual std::optional<Envelope> Next() = 0;
  // True while a message of this rank is being sent or received.
  virtual bool Busy() const = 0;
  // True while a message of this rank is being sent.  It proceeds only when Next is called.
  virtual bool Sending() const { return false; }
  virtual Collective::Traffic traffic() const = 0;
};

}  // namespace dtrain
