// What the parts of a sparse collective share on one rank: its way to the others (SparseLink), and the
// messages of one of its moves (SparseMessages).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/comm/collective.h"
#include "framework/comm/sparse_list.h"
#include "framework/comm/transport.h"

namespace dtrain {

// Entries are counted with one word on the wire.
using SparseCount = int32_t;

struct SparseLink {
  Transport& transport;
  std::vector<int> node_of;  // of each rank; empty where nodes are not known

  Collective::Traffic traffic = {};
  int64_t events = 0;  // that have moved something, so far
  int64_t budget = 0;  // bytes of arithmetic that may be done before the network is looked at

  int size() const { return transport.size(); }
  Rank rank() const { return transport.rank(); }
  // The rank `steps` further around.
  Rank Around(int steps) const { return (rank() + steps % size() + size()) % size(); }

  // How many entries, of `left`, may be worked on now; they are taken off the budget.
  int64_t Grant(int64_t left, int64_t bytes_each);
};

// Messages posted together.  All have one tag: between two ranks they come in the order in which they
// were posted, whatever part of whichever sum they belong to.
class SparseMessages {
 public:
  explicit SparseMessages(SparseLink& link) : link_(&link) {}

  // Nothing is sent, or awaited, for nothing.
  template <class Word>
  void Send(Rank to, std::span<const Word> words) {
    SendBytes(to, std::as_bytes(words));
  }
  template <class Word>
  void Receive(Rank from, std::span<Word> words) {
    ReceiveBytes(from, std::as_writable_bytes(words));
  }
  // `count` stays in place until it is through.
  void SendCount(Rank to, const SparseCount& count) { Send(to, std::span(&count, 1)); }
  void ReceiveCount(Rank from, SparseCount& count) { Receive(from, std::span(&count, 1)); }
  // Positions, then values.
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
