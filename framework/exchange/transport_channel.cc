#include "framework/exchange/transport_channel.h"

#include <algorithm>

#include "framework/core/bytes.h"
#include "framework/core/check.h"

namespace dtrain {
namespace {

// Encoding is the kind and number format of the vector that is sent with a message.
enum class Encoding : uint8_t { kNothing, kDense, kSparse, kFp16, kBf16 };

Encoding FormOf(const std::optional<VectorSlice>& slice) {
  if (!slice) return Encoding::kNothing;
  if (slice->sparse()) return Encoding::kSparse;
  if (slice->wire == Wire::kFp32) return Encoding::kDense;
  return slice->wire == Wire::kFp16 ? Encoding::kFp16 : Encoding::kBf16;
}

Wire WireOf(Encoding form) {
  if (form == Encoding::kFp16) return Wire::kFp16;
  return form == Encoding::kBf16 ? Wire::kBf16 : Wire::kFp32;
}

// Place of a slice in the sender's part of the window; its bytes are then not sent.
struct Place {
  int64_t blob = 0;  // NodeWindow::Lend
  int64_t offset = 0, stride = 0;
};

std::string HeaderOf(const Envelope& envelope, const std::optional<Place>& place) {
  ByteWriter writer;
  const Encoding form = FormOf(envelope.slice);
  writer(envelope.from, envelope.to, envelope.message.kind, envelope.message.words, envelope.finite,
         static_cast<uint8_t>(form));
  if (form != Encoding::kNothing) writer.Value(envelope.slice->range);
  if (form == Encoding::kSparse) writer.Value(envelope.slice->entries);
  if (place) writer.Value(*place);
  return writer.Take();
}

struct Header {
  Envelope envelope;
  std::optional<Place> place;
};

Header Read(const std::string& bytes, Rank from_rank) {
  ByteReader reader(bytes);
  Header header;
  Envelope& envelope = header.envelope;
  envelope.from_rank = from_rank;
  uint8_t form = 0;
  reader(envelope.from, envelope.to, envelope.message.kind, envelope.message.words, envelope.finite,
         form);
  if (form == static_cast<uint8_t>(Encoding::kNothing)) return header;
  envelope.slice = VectorSlice{.range = reader.Value<Range>()};
  envelope.slice->wire = WireOf(static_cast<Encoding>(form));
  if (form == static_cast<uint8_t>(Encoding::kSparse))
    envelope.slice->entries = reader.Value<int64_t>();
  if (!reader.AtEnd()) header.place = reader.Value<Place>();
  return header;
}

// The runs of elements of a slice, each of which is sent as one transport message: the elements of
// a dense slice, or the positions and the values of a sparse one.
struct Parts {
  std::vector<int64_t> begins;  // offsets in the blob
  int64_t elements = 0;         // of each run
};

Parts PartsOf(const VectorSlice& slice) {
  if (slice.sparse()) return {{slice.offset, slice.offset + slice.stride}, slice.entries};
  return {{slice.offset}, slice.range.size()};
}

// A dense vector may be sent on, as InHAD's node actor does with new weights.
Blob RoomFor(const VectorSlice& slice, BlobPools& pools) {
  return slice.sparse() ? pools.NewRoom(2 * slice.entries) : pools.NewToSend(slice.range.size());
}

}  // namespace

TransportChannel::TransportChannel(Transport& transport, BlobPools& pools, NodeWindow* window)
    : transport_(transport), pools_(pools), window_(window), inbox_(transport.size()) {}

TransportChannel::~TransportChannel() {
  if (Busy()) transport_.Withdraw();
}

void TransportChannel::Send(Rank to, Envelope envelope) {
  std::optional<Place> place;
  if (window_ != nullptr && envelope.slice && envelope.slice->bytes() > 0) {
    const VectorSlice& slice = *envelope.slice;
    const std::optional<int64_t> blob = window_->Lend(slice.blob, to);
    if (blob) place = {*blob, slice.offset, slice.stride};
  }
  Outgoing& sending = sends_.emplace_back();
  sending.header = HeaderOf(envelope, place);
  sending.header_request = transport_.Send(
      to, Tag::kControl,
      {reinterpret_cast<const std::byte*>(sending.header.data()), sending.header.size()});
  traffic_.bytes_sent += static_cast<int64_t>(sending.header.size());
  ++traffic_.messages;
  if (!envelope.slice || envelope.slice->bytes() == 0) return;
  traffic_.bytes_sent += envelope.slice->bytes();
  if (place) {
    traffic_.bytes_lent += envelope.slice->bytes();
  } else {
    sending.slice = std::move(envelope.slice);
    SendVector(to, sending);
  }
}

void TransportChannel::SendVector(Rank to, Outgoing& sending) {
  const VectorSlice& slice = *sending.slice;
  if (slice.wire != Wire::kFp32) {
    const auto n = static_cast<size_t>(slice.range.size());
    sending.short_floats.resize(n);
    Encode(slice.wire, sending.short_floats.data(), slice.At(slice.range.begin),
           slice.range.size());
    sending.slice_requests.push_back(
        transport_.Send(to, Tag::kBulk, std::as_bytes(std::span(sending.short_floats))));
    sending.slice.reset();  // the blob is not needed any more
    return;
  }
  const Parts parts = PartsOf(slice);
  for (const int64_t begin : parts.begins) {
    sending.slice_requests.push_back(transport_.Send(
        to, Tag::kBulk,
        std::as_bytes(std::span(slice.blob.f32() + begin, static_cast<size_t>(parts.elements)))));
  }
}

bool TransportChannel::AllDone(std::vector<Request>& requests) {
  return std::all_of(requests.begin(), requests.end(), [this](Request& request) {
    return !request.active() || transport_.Test(request);
  });
}

void TransportChannel::ForgetSent() {
  sends_.remove_if([this](Outgoing& sending) {
    const bool header = !sending.header_request.active() || transport_.Test(sending.header_request);
    return header && AllDone(sending.slice_requests);
  });
}

void TransportChannel::ReceiveHeaders() {
  while (const std::optional<Incoming> incoming = transport_.Probe(Tag::kControl)) {
    ReceiveHeader(*incoming);
  }
}

void TransportChannel::ReceiveHeader(const Incoming& incoming) {
  std::string header(incoming.bytes, '\0');
  Request request = transport_.Receive(
      incoming.from, Tag::kControl, {reinterpret_cast<std::byte*>(header.data()), header.size()});
  while (!transport_.Test(request)) {
  }
  Header read = Read(header, incoming.from);
  Arriving arriving{std::move(read.envelope), {}};
  traffic_.bytes_received += static_cast<int64_t>(header.size());
  if (arriving.envelope.slice && arriving.envelope.slice->bytes() > 0) {
    VectorSlice& slice = *arriving.envelope.slice;
    traffic_.bytes_received += slice.bytes();
    if (read.place) {
      slice.blob = window_->Borrow(incoming.from, read.place->blob);
      slice.offset = read.place->offset;
      slice.stride = read.place->stride;
    } else {
      ReceiveVector(incoming.from, arriving);
    }
  }
  inbox_[incoming.from].push_back(std::move(arriving));
  ++arriving_;
}

void TransportChannel::ReceiveVector(Rank from, Arriving& arriving) {
  VectorSlice& slice = *arriving.envelope.slice;
  slice.blob = RoomFor(slice, pools_);
  if (slice.sparse()) slice.stride = slice.entries;
  float* const memory = slice.blob.MutableF32();
  if (slice.wire != Wire::kFp32) {
    const int64_t n = slice.range.size();
    arriving.requests.push_back(transport_.Receive(
        from, Tag::kBulk,
        std::as_writable_bytes(std::span(InPlace(memory, n), static_cast<size_t>(n)))));
    return;
  }
  const Parts parts = PartsOf(slice);
  for (const int64_t begin : parts.begins) {
    arriving.requests.push_back(transport_.Receive(
        from, Tag::kBulk,
        std::as_writable_bytes(std::span(memory + begin, static_cast<size_t>(parts.elements)))));
  }
}

// Converts values that were received in 16 bits to floats.
void TransportChannel::Complete(Envelope& envelope) {
  if (!envelope.slice || envelope.slice->wire == Wire::kFp32) return;
  DecodeInPlace(envelope.slice->wire, envelope.slice->blob.MutableF32(),
                envelope.slice->range.size());
}

std::optional<Envelope> TransportChannel::Next() {
  ForgetSent();
  if (window_ != nullptr) window_->TakeBack();
  ReceiveHeaders();
  if (arriving_ == 0) return std::nullopt;
  for (size_t tried = 0; tried < inbox_.size(); ++tried) {
    std::deque<Arriving>& queue = inbox_[next_rank_];
    next_rank_ = (next_rank_ + 1) % inbox_.size();
    if (queue.empty() || !AllDone(queue.front().requests)) continue;
    std::optional<Envelope> envelope = std::move(queue.front().envelope);
    queue.pop_front();
    Complete(*envelope);
    --arriving_;
    return envelope;
  }
  return std::nullopt;
}

}  // namespace dtrain
