#include "framework/exchange/transport_mail.h"

#include "framework/core/bytes.h"
#include "framework/core/check.h"

namespace dtrain {
namespace {

std::string HeaderOf(const Letter& letter) {
  ByteWriter writer;
  writer(letter.from, letter.to, letter.message.kind, letter.message.words, letter.finite,
         letter.piece.has_value());
  if (letter.piece) writer.Value(letter.piece->range);
  return writer.Take();
}

Letter LetterOf(const std::string& header, Rank from_rank) {
  ByteReader reader(header);
  Letter letter;
  letter.from_rank = from_rank;
  bool with_piece = false;
  reader(letter.from, letter.to, letter.message.kind, letter.message.words, letter.finite,
         with_piece);
  if (with_piece) letter.piece = Piece{.range = reader.Value<Range>()};
  return letter;
}

}  // namespace

TransportMail::TransportMail(Transport& transport, BlobPools& pools)
    : transport_(transport), pools_(pools), inbox_(transport.size()) {}

TransportMail::~TransportMail() {
  if (Busy()) transport_.Withdraw();
}

void TransportMail::Send(Rank to, Letter letter) {
  Outgoing& sending = sends_.emplace_back();
  sending.header = HeaderOf(letter);
  sending.piece = std::move(letter.piece);
  sending.header_request = transport_.Send(
      to, Tag::kControl,
      {reinterpret_cast<const std::byte*>(sending.header.data()), sending.header.size()});
  traffic_.bytes_sent += static_cast<int64_t>(sending.header.size());
  ++traffic_.messages;
  if (!sending.piece || sending.piece->range.empty()) return;
  const Piece& piece = *sending.piece;
  sending.piece_request =
      transport_.Send(to, Tag::kBulk,
                      {reinterpret_cast<const std::byte*>(piece.At(piece.range.begin)),
                       static_cast<size_t>(piece.bytes())});
  traffic_.bytes_sent += piece.bytes();
}

void TransportMail::ForgetSent() {
  sends_.remove_if([this](Outgoing& sending) {
    const auto sent = [this](Request& request) {
      return !request.active() || transport_.Test(request);
    };
    return sent(sending.header_request) && sent(sending.piece_request);
  });
}

void TransportMail::ReceiveHeaders() {
  while (const std::optional<Incoming> incoming = transport_.Probe(Tag::kControl)) {
    ReceiveHeader(*incoming);
  }
}

void TransportMail::ReceiveHeader(const Incoming& incoming) {
  std::string header(incoming.bytes, '\0');
  Request request = transport_.Receive(
      incoming.from, Tag::kControl, {reinterpret_cast<std::byte*>(header.data()), header.size()});
  while (!transport_.Test(request)) {
  }
  Arriving arriving{LetterOf(header, incoming.from), {}};
  traffic_.bytes_received += static_cast<int64_t>(header.size());
  if (arriving.letter.piece && !arriving.letter.piece->range.empty()) {
    Piece& piece = *arriving.letter.piece;
    piece.blob = pools_.New(piece.range.size());
    arriving.request = transport_.Receive(incoming.from, Tag::kBulk,
                                          {reinterpret_cast<std::byte*>(piece.blob.MutableF32()),
                                           static_cast<size_t>(piece.bytes())});
    traffic_.bytes_received += piece.bytes();
  }
  inbox_[incoming.from].push_back(std::move(arriving));
  ++arriving_;
}

bool TransportMail::Complete(Arriving& arriving) {
  return !arriving.request.active() || transport_.Test(arriving.request);
}

std::optional<Letter> TransportMail::Next() {
  ForgetSent();
  ReceiveHeaders();
  if (arriving_ == 0) return std::nullopt;
  for (size_t tried = 0; tried < inbox_.size(); ++tried) {
    std::deque<Arriving>& queue = inbox_[next_rank_];
    next_rank_ = (next_rank_ + 1) % inbox_.size();
    if (queue.empty() || !Complete(queue.front())) continue;
    std::optional<Letter> letter = std::move(queue.front().letter);
    queue.pop_front();
    --arriving_;
    return letter;
  }
  return std::nullopt;
}

}  // namespace dtrain
