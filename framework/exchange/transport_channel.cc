#include "framework/exchange/transport_channel.h"

#include <algorithm>

#include "framework/core/bytes.h"
#include "framework/core/check.h"

namespace dtrain {
namespace {

// The vector that comes with a message, and its number format.
enum class Form : uint8_t { kNothing, kDense, kSparse, kFp16, kBf16 };

Form FormOf(const std::optional<Piece>& piece) {
  if (!piece) return Form::kNothing;
  if (piece->sparse()) return Form::kSparse;
  if (piece->wire == Wire::kFp32) return Form::kDense;
  return piece->wire == Wire::kFp16 ? Form::kFp16 : Form::kBf16;
}

Wire WireOf(Form form) {
  if (form == Form::kFp16) return Wire::kFp16;
  return form == Form::kBf16 ? Wire::kBf16 : Wire::kFp32;
}

// Where a piece lies that does not follow as bytes: in the sender's part of the window.
struct Place {
  int64_t blob = 0;  // NodeWindow::Lend
  int64_t offset = 0, stride = 0;
};

std::string HeaderOf(const Envelope& envelope, const std::optional<Place>& place) {
  ByteWriter writer;
  const Form form = FormOf(envelope.piece);
  writer(envelope.from, envelope.to, envelope.message.kind, envelope.message.words, envelope.finite,
         static_cast<uint8_t>(form));
  if (form != Form::kNothing) writer.Value(envelope.piece->range);
  if (form == Form::kSparse) writer.Value(envelope.piece->entries);
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
  if (form == static_cast<uint8_t>(Form::kNothing)) return header;
  envelope.piece = Piece{.range = reader.Value<Range>()};
  envelope.piece->wire = WireOf(static_cast<Form>(form));
  if (form == static_cast<uint8_t>(Form::kSparse))
    envelope.piece->entries = reader.Value<int64_t>();
  if (!reader.AtEnd()) header.place = reader.Value<Place>();
  return header;
}

// Runs of elements, each a message of its own: a dense piece's, or a sparse one's positions and
// values.
struct Parts {
  std::vector<int64_t> begins;  // in the blob
  int64_t elements = 0;         // of each
};

Parts PartsOf(const Piece& piece) {
  if (piece.sparse()) return {{piece.offset, piece.offset + piece.stride}, piece.entries};
  return {{piece.offset}, piece.range.size()};
}

// A dense vector may be handed on, as a node does with new weights.
Blob RoomFor(const Piece& piece, BlobPools& pools) {
  return piece.sparse() ? pools.NewRoom(2 * piece.entries) : pools.NewToSend(piece.range.size());
}

}  // namespace

TransportChannel::TransportChannel(Transport& transport, BlobPools& pools, NodeWindow* window)
    : transport_(transport), pools_(pools), window_(window), inbox_(transport.size()) {}

TransportChannel::~TransportChannel() {
  if (Busy()) transport_.Withdraw();
}

void TransportChannel::Send(Rank to, Envelope envelope) {
  std::optional<Place> place;
  if (window_ != nullptr && envelope.piece && envelope.piece->bytes() > 0) {
    const Piece& piece = *envelope.piece;
    const std::optional<int64_t> blob = window_->Lend(piece.blob, to);
    if (blob) place = {*blob, piece.offset, piece.stride};
  }
  Outgoing& sending = sends_.emplace_back();
  sending.header = HeaderOf(envelope, place);
  sending.header_request = transport_.Send(
      to, Tag::kControl,
      {reinterpret_cast<const std::byte*>(sending.header.data()), sending.header.size()});
  traffic_.bytes_sent += static_cast<int64_t>(sending.header.size());
  ++traffic_.messages;
  if (!envelope.piece || envelope.piece->bytes() == 0) return;
  traffic_.bytes_sent += envelope.piece->bytes();
  if (place) {
    traffic_.bytes_lent += envelope.piece->bytes();
  } else {
    sending.piece = std::move(envelope.piece);
    SendVector(to, sending);
  }
}

void TransportChannel::SendVector(Rank to, Outgoing& sending) {
  const Piece& piece = *sending.piece;
  if (piece.wire != Wire::kFp32) {
    const auto n = static_cast<size_t>(piece.range.size());
    sending.short_floats.resize(n);
    Encode(piece.wire, sending.short_floats.data(), piece.At(piece.range.begin),
           piece.range.size());
    sending.piece_requests.push_back(
        transport_.Send(to, Tag::kBulk, std::as_bytes(std::span(sending.short_floats))));
    sending.piece.reset();  // its blob is free
    return;
  }
  const Parts parts = PartsOf(piece);
  for (const int64_t begin : parts.begins) {
    sending.piece_requests.push_back(transport_.Send(
        to, Tag::kBulk,
        std::as_bytes(std::span(piece.blob.f32() + begin, static_cast<size_t>(parts.elements)))));
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
    return header && AllDone(sending.piece_requests);
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
  if (arriving.envelope.piece && arriving.envelope.piece->bytes() > 0) {
    Piece& piece = *arriving.envelope.piece;
    traffic_.bytes_received += piece.bytes();
    if (read.place) {
      piece.blob = window_->Borrow(incoming.from, read.place->blob);
      piece.offset = read.place->offset;
      piece.stride = read.place->stride;
    } else {
      ReceiveVector(incoming.from, arriving);
    }
  }
  inbox_[incoming.from].push_back(std::move(arriving));
  ++arriving_;
}

void TransportChannel::ReceiveVector(Rank from, Arriving& arriving) {
  Piece& piece = *arriving.envelope.piece;
  piece.blob = RoomFor(piece, pools_);
  if (piece.sparse()) piece.stride = piece.entries;
  float* const memory = piece.blob.MutableF32();
  if (piece.wire != Wire::kFp32) {
    const int64_t n = piece.range.size();
    arriving.requests.push_back(transport_.Receive(
        from, Tag::kBulk,
        std::as_writable_bytes(std::span(InPlace(memory, n), static_cast<size_t>(n)))));
    return;
  }
  const Parts parts = PartsOf(piece);
  for (const int64_t begin : parts.begins) {
    arriving.requests.push_back(transport_.Receive(
        from, Tag::kBulk,
        std::as_writable_bytes(std::span(memory + begin, static_cast<size_t>(parts.elements)))));
  }
}

// What has come in 16 bits becomes floats.
void TransportChannel::Complete(Envelope& envelope) {
  if (!envelope.piece || envelope.piece->wire == Wire::kFp32) return;
  DecodeInPlace(envelope.piece->wire, envelope.piece->blob.MutableF32(),
                envelope.piece->range.size());
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
