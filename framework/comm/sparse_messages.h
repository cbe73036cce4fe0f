// SparseLink: the transport, and the counts, that all parts of a sparse collective share on one
// rank.  SparseMessages: the messages of one move of such a part.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/comm/collective.h"
#include "framework/comm/sparse_list.h"
#include "framework/comm/transport.h"

namespace dtrain {

// A count of entries, as it is sent: one word.
using SparseCount = int32_t;

struct SparseLink {
  Transport& transport;
  std::vector<int> node_of;  // the node of each rank; empty if nodes are unknown

  Collective::Traffic traffic = {};
  int64_t events = 0;  // number of events so far that moved something
  int64_t budget = 0;  // bytes of arithmetic that may be done before the network is polled

  int size() const { return transport.size(); }
  Rank rank() const { return transport.rank(); }
  // Returns the rank `steps` places after this one, modulo the number of ranks.
  Rank Around(int steps) const { return (rank() + steps % size() + size()) % size(); }

  // Returns how many of `left` entries may be processed now, and subtracts them from the budget.
  int64_t Grant(int64_t left, int64_t bytes_each);
};

// Holds messages that are posted together.  All have the same tag, so messages between two ranks
// arrive in the order in which they were posted, in whatever part of whichever sum.
class SparseMessages {
 public:
  explicit SparseMessages(SparseLink& link) : link_(&link) {}

  // Empty spans are neither sent nor awaited.
  template <class Word>
  void Send(Rank to, std::span<const Word> words) {
    SendBytes(to, std::as_bytes(words));
  }
  template <class Word>
  void Receive(Rank from, std::span<Word> words) {
    ReceiveBytes(from, std::as_writable_bytes(words));
  }
  // `count` must not move until the message is complete.
  void SendCount(Rank to, const SparseCount& count) { Send(to, std::span(&count, 1)); }
  void ReceiveCount(Rank from, SparseCount& count) { Receive(from, std::span(&count, 1)); }
  // Entries are sent as positions, then values.
  void SendEntries(Rank to, SparseEntries entries) {
    Send(to, entries.positions);
    Send(to, entries.values);
  }
  void ReceiveEntries(Rank from, const SparseShelf::Place& place) {
    const auto count = static_cast<size_t>(place.size);
    Receive(from, std::span(place.positions, count));
    Receive(from, std::span(place.values, count));
  }

  bool Arrived() { return AllOf(receives_); }
  bool Sent() { return AllOf(sends_); }
  bool Through() { return Arrived() && Sent(); }

 private:
  void SendBytes(Rank to, std::span<const std::byte> bytes);
  void ReceiveBytes(Rank from, std::span<std::byte> bytes);
  bool AllOf(std::vector<Request>& requests);

  SparseLink* link_;
  std::vector<Request> sends_;
  std::vector<Request> receives_;
};

}  // namespace dtrain
