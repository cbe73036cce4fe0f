#include "framework/sim/sim_mail.h"

#include <memory>

namespace dtrain {
namespace {

// What TransportMail's header takes.
constexpr int64_t kHeaderBytes = 22;
constexpr int64_t kRangeBytes = 16;
constexpr int64_t kEntriesBytes = 8;  // of a sparse vector: how many

int64_t BytesOf(const Letter& letter) {
  const int64_t header =
      kHeaderBytes + static_cast<int64_t>(letter.message.words.size() * sizeof(int64_t));
  if (!letter.piece) return header;
  const int64_t entries = letter.piece->sparse() ? kEntriesBytes : 0;
  return header + kRangeBytes + entries + letter.piece->bytes();
}

}  // namespace

SimMail::SimMail(Rank rank, Network& network, std::vector<SimMail*>& boxes,
                 std::function<void(Rank)> wake)
    : rank_(rank), network_(network), boxes_(boxes), wake_(std::move(wake)) {}

void SimMail::Send(Rank to, Letter letter) {
  const int64_t bytes = BytesOf(letter);
  auto carried = std::make_unique<Letter>(std::move(letter));
  network_.Send(rank_, to, bytes, [this, to, carried = std::move(carried)]() mutable {
    boxes_[to]->inbox_.push_back(std::move(*carried));
    wake_(to);
  });
}

std::optional<Letter> SimMail::Next() {
  if (inbox_.empty()) return std::nullopt;
  std::optional<Letter> letter = std::move(inbox_.front());
  inbox_.pop_front();
  return letter;
}

Collective::Traffic SimMail::traffic() const {
  const Network::Traffic& traffic = network_.traffic(rank_);
  return {traffic.bytes_sent, traffic.bytes_received, traffic.messages_sent};
}

}  // namespace dtrain
