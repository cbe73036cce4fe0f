#include "framework/sim/sim_channel.h"

#include <memory>

namespace dtrain {
namespace {

// Sizes of TransportChannel's header and its optional fields.
constexpr int64_t kHeaderBytes = 22;
constexpr int64_t kRangeBytes = 16;
constexpr int64_t kEntriesBytes = 8;  // number of entries of a sparse vector

int64_t BytesOf(const Envelope& envelope) {
  const int64_t header =
      kHeaderBytes + static_cast<int64_t>(envelope.message.words.size() * sizeof(int64_t));
  if (!envelope.slice) return header;
  const int64_t entries = envelope.slice->sparse() ? kEntriesBytes : 0;
  return header + kRangeBytes + entries + envelope.slice->bytes();
}

}  // namespace

SimChannel::SimChannel(Rank rank, Network& network, std::vector<SimChannel*>& boxes,
                       std::function<void(Rank)> wake)
    : rank_(rank), network_(network), boxes_(boxes), wake_(std::move(wake)) {}

void SimChannel::Send(Rank to, Envelope envelope) {
  const int64_t bytes = BytesOf(envelope);
  auto carried = std::make_unique<Envelope>(std::move(envelope));
  network_.Send(rank_, to, bytes, [this, to, carried = std::move(carried)]() mutable {
    boxes_[to]->inbox_.push_back(std::move(*carried));
    wake_(to);
  });
}

std::optional<Envelope> SimChannel::Next() {
  if (inbox_.empty()) return std::nullopt;
  std::optional<Envelope> envelope = std::move(inbox_.front());
  inbox_.pop_front();
  return envelope;
}

Collective::Traffic SimChannel::traffic() const {
  const Network::Traffic& traffic = network_.traffic(rank_);
  return {traffic.bytes_sent, traffic.bytes_received, traffic.messages_sent};
}

}  // namespace dtrain
