// Network: messages between ranks in virtual time, over shared NICs.
//
// Each node has one NIC with an outgoing and an incoming direction (full duplex).  A message
// passes the sender's outgoing direction and, `latency` later, the receiver's incoming one, both at
// the same time (cut-through): alone it takes latency + bytes / bandwidth.  W workers that push to
// one server share its incoming direction, and its answers share the outgoing one.  Where a message
// shares both it is delivered when the slower one is through; the share that it cannot use at the
// faster one is lost to the others, as if windows adapted slowly.
//
// Messages between ranks of one node do not touch the NIC: each pair of ranks has the bandwidth of
// inside_node to itself.  A rank's message to itself arrives at once and counts as no traffic.
// Between two ranks messages are delivered in the order of Send; otherwise no order is promised.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "framework/comm/transport.h"
#include "framework/sim/event_queue.h"
#include "framework/sim/faults.h"
#include "framework/sim/network_model.h"
#include "framework/sim/nic.h"

namespace dtrain {

class Network {
 public:
  // `node_of`: the node of each rank, counted from 0; empty: rank / model.per_node.
  // `seed`: of the messages' shares.
  Network(EventQueue& events, const NetworkModel& model, int ranks, std::vector<int> node_of = {},
          uint64_t seed = 0);
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // `delivered` runs when the last byte is there (and the receiver's overhead spent), `sent` when
  // the sender's memory is free again: before or at that time.  Neither runs within Send.
  void Send(Rank from, Rank to, int64_t bytes, Task delivered, Task sent = {});

  // Messages that are sent from now on arrive later.  In a run that is not saved.
  void Delay(const std::vector<Faults::Delay>& delays);

  struct Traffic {
    int64_t bytes_sent = 0;  // counted at Send
    int64_t bytes_received = 0;
    int64_t messages_sent = 0;
    int64_t messages_received = 0;
  };
  const Traffic& traffic(Rank rank) const { return traffic_[rank]; }
  int64_t in_flight() const { return in_flight_; }  // messages sent and not yet delivered

  // When nothing is in flight.  Traffic counts from 0 again.
  void Visit(StateVisitor& visitor);

  int ranks() const { return static_cast<int>(node_of_.size()); }
  int nodes() const { return static_cast<int>(incoming_.size()); }
  int NodeOf(Rank rank) const { return node_of_[rank]; }
  Nanos outgoing_busy(int node) const { return outgoing_[node].busy(); }
  Nanos incoming_busy(int node) const { return incoming_[node].busy(); }

 private:
  using Id = Nic::MessageId;
  // A pair of ranks some of whose messages are delayed.
  struct Delayed {
    std::unordered_map<int64_t, Nanos> by;  // by message
    int64_t sent = 0;                       // messages
    Nanos until = -1;                       // nothing arrives before
  };
  struct Transfer {
    Rank from;
    Rank to;
    int64_t bytes;
    double share;  // weight at the incoming NIC
    Nanos left;    // when the last byte passed the outgoing NIC; -1: not yet
    bool arrived;  // the incoming NIC is through
    Nanos delay;   // behind that
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
  std::deque<Nic> outgoing_;  // by node; NICs stay where they are
  std::deque<Nic> incoming_;
  std::vector<Nanos> processor_free_;                   // by rank
  std::unordered_map<Nic::Flow, double> copies_free_;   // by pair of a node: when the last is done
  std::unordered_map<Nic::Flow, int64_t> messages_of_;  // by pair of ranks, where shares differ
  std::unordered_map<Nic::Flow, Delayed> delayed_;      // by pair of ranks
  std::vector<Transfer> transfers_;
  std::vector<Id> free_;
  std::vector<Traffic> traffic_;
  int64_t in_flight_ = 0;
};

}  // namespace dtrain
