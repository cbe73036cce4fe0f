#include "framework/comm/local/local_transport.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <numeric>

#include "framework/core/check.h"

namespace dtrain {

LocalTransport::LocalTransport(std::shared_ptr<LocalWorld::State> state, Rank rank)
    : state_(std::move(state)),
      rank_(rank),
      exceptions_at_start_(std::uncaught_exceptions()),
      node_ranks_(state_->size()) {
  std::iota(node_ranks_.begin(), node_ranks_.end(), 0);
}

LocalTransport::~LocalTransport() {
  Withdraw();
  const bool failed = std::uncaught_exceptions() > exceptions_at_start_;
  state_->Leave(rank_, failed, failed ? "it ended with an error" : "it has ended");
}

void LocalTransport::Withdraw() {
  receives_.clear();
  for (LocalMailbox& mailbox : state_->mailboxes) {
    const std::lock_guard lock(mailbox.mutex);
    std::erase_if(mailbox.waiting, [this](const LocalMessage* m) { return m->from == rank_; });
    mailbox.count = static_cast<int>(mailbox.waiting.size());
  }
}

// Withdraws first, since the exception frees the memory of the messages in flight.
void LocalTransport::ThrowLost(Rank peer) {
  Withdraw();
  state_->ThrowLost(peer);
}

int LocalTransport::TakeSlot() {
  if (free_slots_.empty()) {
    free_slots_.push_back(static_cast<int>(slots_.size()));
    slots_.push_back(std::make_unique<Slot>());
  }
  const int slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

Request LocalTransport::Send(Rank to, Tag tag, std::span<const std::byte> data) {
  const int index = TakeSlot();
  Slot& slot = *slots_[index];
  slot.sending = true;
  slot.peer = to;
  slot.message.from = rank_;
  slot.message.tag = tag;
  slot.message.data = data;
  slot.message.received = false;
  LocalMailbox& mailbox = state_->mailboxes[to];
  const std::lock_guard lock(mailbox.mutex);
  mailbox.waiting.push_back(&slot.message);
  ++mailbox.count;
  return {index};
}

Request LocalTransport::Receive(Rank from, Tag tag, std::span<std::byte> data) {
  const int index = TakeSlot();
  Slot& slot = *slots_[index];
  slot.sending = false;
  slot.peer = from;
  slot.tag = tag;
  slot.into = data;
  slot.received = false;
  receives_.push_back(index);
  Deliver();
  return {index};
}

// Copies every waiting message that matches a posted receive.
void LocalTransport::Deliver() {
  LocalMailbox& mailbox = state_->mailboxes[rank_];
  if (receives_.empty() || mailbox.count.load() == 0) return;
  const std::lock_guard lock(mailbox.mutex);
  std::erase_if(mailbox.waiting, [this](LocalMessage* message) { return Hand(*message); });
  mailbox.count = static_cast<int>(mailbox.waiting.size());
}

bool LocalTransport::Hand(LocalMessage& message) {
  const auto match = std::find_if(receives_.begin(), receives_.end(), [&](int index) {
    return slots_[index]->peer == message.from && slots_[index]->tag == message.tag;
  });
  if (match == receives_.end()) return false;
  Slot& slot = *slots_[*match];
  DT_CHECK(slot.into.size() == message.data.size())
      << "message from rank " << message.from << ", tag " << static_cast<int>(message.tag)
      << ", has " << message.data.size() << " bytes instead of " << slot.into.size();
  if (!slot.into.empty()) {
    std::memcpy(slot.into.data(), message.data.data(), message.data.size());
  }
  slot.received = true;
  receives_.erase(match);
  message.received = true;  // the sender may reuse its memory from now on
  return true;
}

bool LocalTransport::Test(Request& request) {
  DT_CHECK(request.active()) << "request is not in flight";
  Slot& slot = *slots_[request.slot];
  // Read before Deliver, since the peer may send its last message and leave in between.
  const bool peer_gone = state_->gone[slot.peer].load();
  Deliver();
  if (!(slot.sending ? slot.message.received.load() : slot.received)) {
    if (peer_gone) ThrowLost(slot.peer);
    return false;
  }
  free_slots_.push_back(request.slot);
  request.slot = -1;
  return true;
}

std::optional<Incoming> LocalTransport::Probe(Tag tag) {
  const Rank failed = state_->failed_rank.load();
  Deliver();
  LocalMailbox& mailbox = state_->mailboxes[rank_];
  if (mailbox.count.load() > 0) {
    const std::lock_guard lock(mailbox.mutex);
    for (const LocalMessage* message : mailbox.waiting) {
      if (message->tag == tag) return Incoming{message->from, message->data.size()};
    }
  }
  if (failed >= 0) ThrowLost(failed);
  return std::nullopt;
}

void LocalTransport::Barrier() {
  LocalWorld::State& state = *state_;
  std::unique_lock lock(state.mutex);
  const int64_t generation = state.barrier_generation;
  if (++state.barrier_waiting == state.size()) {
    state.barrier_waiting = 0;
    ++state.barrier_generation;
    state.barrier_changed.notify_all();
    return;
  }
  state.barrier_changed.wait(
      lock, [&] { return state.barrier_generation != generation || state.left_rank >= 0; });
  if (state.barrier_generation != generation) return;
  const Rank lost = state.left_rank;
  lock.unlock();
  ThrowLost(lost);
}

}  // namespace dtrain
