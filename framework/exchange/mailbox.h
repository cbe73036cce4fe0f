// Mailbox: sends and receives the messages of one rank, to actors on this and on other ranks, and
// counts them.
#pragma once

#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "framework/core/check.h"
#include "framework/exchange/message_channel.h"

namespace dtrain {

class Mailbox {
 public:
  // `channel` and `nodes` outlive the mailbox.  `channel` is null if no other rank has an actor to
  // exchange messages with.  `nodes` has the node of each of `ranks`, or is empty if they are
  // unknown.
  Mailbox(Rank rank, int ranks, MessageChannel* channel, const std::vector<int>& nodes)
      : rank_(rank), channel_(channel), nodes_(nodes) {
    DT_CHECK(nodes.empty() || static_cast<int>(nodes.size()) == ranks)
        << "nodes of " << nodes.size() << " ranks, there are " << ranks;
  }

  Rank rank() const { return rank_; }

  // Sends a message between actors to rank `to`, and counts it.
  void Send(Rank to, Envelope envelope) {
    ++sent_;
    SendUncounted(to, std::move(envelope));
  }
  // Sends a message between drivers (Service), which is not counted.
  void SendUncounted(Rank to, Envelope envelope) {
    envelope.from_rank = rank_;
    if (to == rank_) {
      local_.push_back(std::move(envelope));
    } else {
      const bool inside = !nodes_.empty() && nodes_[to] == nodes_[rank_];
      if (inside && envelope.slice) bytes_inside_ += envelope.slice->bytes();
      channel_->Send(to, std::move(envelope));
    }
  }

  // Returns the next message for this rank.  A message between actors counts as received from now
  // on.
  std::optional<Envelope> Next() {
    std::optional<Envelope> envelope;
    if (!local_.empty()) {
      envelope = std::move(local_.front());
      local_.pop_front();
    } else if (channel_ != nullptr) {
      envelope = channel_->Next();
    }
    if (envelope && envelope->to != kService) ++received_;
    return envelope;
  }

  // Return the numbers of messages between actors so far.  A message within the rank counts as sent
  // and as received.
  int64_t sent() const { return sent_; }
  int64_t received() const { return received_; }
  // True while a message is being sent or received, or waits here to be read.
  bool Busy() const { return !local_.empty() || (channel_ != nullptr && channel_->Busy()); }
  Collective::Traffic traffic() const {
    Collective::Traffic traffic = channel_ == nullptr ? Collective::Traffic{} : channel_->traffic();
    traffic.bytes_inside = bytes_inside_;
    return traffic;
  }

 private:
  const Rank rank_;
  MessageChannel* const channel_;
  const std::vector<int>& nodes_;
  std::deque<Envelope> local_;  // from this rank to this rank
  int64_t sent_ = 0;
  int64_t received_ = 0;
  int64_t bytes_inside_ = 0;
};

}  // namespace dtrain
