// Network: messages between ranks in virtual time, over shared NICs.
//
// Each node has one NIC with an outgoing and an incoming direction (full duplex).  A message passes
// the sender's outgoing direction and, `latency` later, the receiver's incoming one, both at the
// same time (cut-through), so alone it takes latency + bytes / bandwidth.  W workers that push to
// one server share its incoming direction, and its answers share the outgoing one.  If a message
// shares both directions, it is delivered when the slower one is done.  The share that it cannot
// use at the faster one is not given to other messages, as if TCP windows adapted slowly.
//
// Messages between ranks of one node do not use the NIC: each pair of ranks has the bandwidth of
// inside_node to itself.  A rank's message to itself arrives at once and is not counted as traffic.
// Messages between two ranks are delivered in the order of Send; no other order is guaranteed.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "framework/cluster/network_model.h"
#include "framework/comm/transport.h"
#include "framework/sim/event_queue.h"
#include "framework/sim/faults.h"
#include "framework/sim/nic.h"

namespace dtrain {

class Network {
 public:
  // `node_of` has the node of each rank, from 0; empty: rank / model.per_node.  `seed` determines
  // the random shares of messages (StreamShare).
  Network(EventQueue& events, const NetworkModel& model, int ranks, std::vector<int> node_of = {},
          uint64_t seed = 0);
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // Sends a message.  `delivered` runs when the last byte has arrived and the receiver's overhead
  // has passed; `sent` runs when the sender's memory is free again, before or at that time.
  // Neither runs within Send.
  void Send(Rank from, Rank to, int64_t bytes, Task delivered, Task sent = {});

  // Delays messages that are sent from now on.  Only for runs that are not saved.
  void Delay(const std::vector<Faults::Delay>& delays);
  // Call it before the first message.
  void SlowDown(const std::vector<Faults::SlowLink>& links);

  struct Traffic {
    int64_t bytes_sent = 0;  // counted at Send
    int64_t bytes_received = 0;
    int64_t messages_sent = 0;
    int64_t messages_received = 0;
  };
  const Traffic& traffic(Rank rank) const { return traffic_[rank]; }
  int64_t in_flight() const { return in_flight_; }  // messages sent and not yet delivered

  // Call it only when nothing is in flight.  Traffic is not saved and counts from 0 after loading.
  void Visit(StateVisitor& visitor);

  int ranks() const { return static_cast<int>(node_of_.size()); }
  int nodes() const { return static_cast<int>(incoming_.size()); }
  int NodeOf(Rank rank) const { return node_of_[rank]; }
  Nanos outgoing_busy(int node) const { return outgoing_[node].busy(); }
  Nanos incoming_busy(int node) const { return incoming_[node].busy(); }

 private:
  using Id = Nic::MessageId;
  // Holds the delays of a pair of ranks.
  struct Delayed {
    std::unordered_map<int64_t, Nanos> by;  // delay by number of the message
    int64_t sent = 0;                       // messages sent so far
    Nanos until = -1;                       // no message arrives before this time
  };
  struct Transfer {
    Rank from;
    Rank to;
    int64_t bytes;
    double share;  // weight at the incoming NIC
    Nanos left;    // time at which the last byte passed the outgoing NIC; -1: not yet
    bool arrived;  // the last byte has passed the incoming NIC
    Nanos delay;   // additional delay after that (Faults)
    Task delivered;
    Task sent;
  };

  void AddNics(const LinkModel& link);
  Id Store(Transfer transfer);
  double NextShare(Rank from, Rank to);
  Nanos ProcessorDone(Rank rank);
  static Nic::Flow FlowOf(Rank from, Rank to);
  static Nic::Flow FlowOf(const Transfer& transfer) { return FlowOf(transfer.from, transfer.to); }
  Nanos NextDelay(Rank from, Rank to);
  void Depart(Id id);
  void CopyInside(Id id);
  void OnBegun(Id id);
  void OnLeft(Id id);
  void OnArrived(Id id);
  void Arrive(Id id);
  void Take(Id id);
  void Deliver(Id id);

  EventQueue& events_;
  NetworkModel model_;
  uint64_t seed_;
  Nanos latency_;
  Nanos latency_inside_;
  Nanos overhead_;
  std::vector<int> node_of_;
  std::deque<Nic> outgoing_;  // by node; a deque, since NICs must not move
  std::deque<Nic> incoming_;
  std::vector<Nanos> processor_free_;  // by rank: end of its last overhead
  std::unordered_map<Nic::Flow, double>
      copies_free_;  // by pair inside a node: end of the last copy
  std::unordered_map<Nic::Flow, int64_t> messages_of_;  // by pair of ranks, if shares are random
  std::unordered_map<Nic::Flow, Delayed> delayed_;      // by pair of ranks
  std::vector<Transfer> transfers_;
  std::vector<Id> free_;
  std::vector<Traffic> traffic_;
  int64_t in_flight_ = 0;
};

}  // namespace dtrain
