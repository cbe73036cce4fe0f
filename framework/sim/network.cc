#include "framework/sim/network.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "framework/cluster/noise.h"

namespace dtrain {
namespace {

Nanos FromMicros(double micros) { return std::llround(micros * 1e3); }

}  // namespace

Network::Network(EventQueue& events, const NetworkModel& model, int ranks, std::vector<int> node_of,
                 uint64_t seed)
    : events_(events),
      model_(model),
      seed_(seed),
      latency_(FromMicros(model.between_nodes.latency_us)),
      latency_inside_(FromMicros(model.inside_node.latency_us)),
      overhead_(FromMicros(model.message_overhead_us)),
      node_of_(node_of.empty() ? NodesInOrder(ranks, model.per_node) : std::move(node_of)),
      processor_free_(ranks),
      traffic_(ranks) {
  DT_CHECK(this->ranks() == ranks) << ranks << " ranks, but nodes of " << this->ranks();
  const int nodes = ranks == 0 ? 0 : *std::max_element(node_of_.begin(), node_of_.end()) + 1;
  for (int node = 0; node < nodes; ++node) AddNics(model.between_nodes);
}

void Network::AddNics(const LinkModel& link) {
  outgoing_.emplace_back(events_, link,
                         Nic::Listener{.begun = [this](Id id) { OnBegun(id); },
                                       .passed = [this](Id id) { OnLeft(id); }});
  incoming_.emplace_back(
      events_, link, Nic::Listener{.begun = [](Id) {}, .passed = [this](Id id) { OnArrived(id); }});
}

void Network::Send(Rank from, Rank to, int64_t bytes, Task delivered, Task sent) {
  DT_CHECK(from >= 0 && from < ranks() && to >= 0 && to < ranks())
      << "message from rank " << from << " to rank " << to << " of " << ranks();
  DT_CHECK(bytes >= 0) << "message of " << bytes << " bytes";
  if (from == to) {
    if (sent) events_.After(0, std::move(sent));
    events_.After(0, std::move(delivered));
    return;
  }
  traffic_[from].bytes_sent += bytes;
  traffic_[from].messages_sent += 1;
  in_flight_ += 1;
  const Id id = Store({from, to, bytes, NextShare(from, to), -1, false, NextDelay(from, to),
                       std::move(delivered), std::move(sent)});
  const Nanos start = ProcessorDone(from);
  if (start > events_.now()) {
    events_.At(start, [this, id] { Depart(id); });
  } else {
    Depart(id);
  }
}

Network::Id Network::Store(Transfer transfer) {
  if (free_.empty()) {
    transfers_.push_back(std::move(transfer));
    return static_cast<Id>(transfers_.size()) - 1;
  }
  const Id id = free_.back();
  free_.pop_back();
  transfers_[id] = std::move(transfer);
  return id;
}

// Returns the weight of the next message of a pair.
double Network::NextShare(Rank from, Rank to) {
  if (model_.share_deviation == 0 || model_.queue != NetworkModel::Queue::kFair) return 1;
  return StreamShare(model_.share_deviation, seed_, from, to, messages_of_[FlowOf(from, to)]++);
}

void Network::Delay(const std::vector<Faults::Delay>& delays) {
  for (const Faults::Delay& delay : delays) {
    delayed_[FlowOf(delay.from, delay.to)].by[delay.message] = delay.by;
  }
}

void Network::SlowDown(const std::vector<Faults::SlowLink>& links) {
  for (const Faults::SlowLink& slow : links) {
    LinkModel link = model_.between_nodes;
    link.bandwidth_gbit_s = model_.between_nodes.bandwidth_gbit_s / slow.incoming;
    incoming_[slow.node].SetLink(link);
    link.bandwidth_gbit_s = model_.between_nodes.bandwidth_gbit_s / slow.outgoing;
    outgoing_[slow.node].SetLink(link);
  }
}

Nanos Network::NextDelay(Rank from, Rank to) {
  const auto pair = delayed_.find(FlowOf(from, to));
  if (pair == delayed_.end()) return 0;
  const auto by = pair->second.by.find(pair->second.sent++);
  return by == pair->second.by.end() ? 0 : by->second;
}

// Returns the time at which the rank's processor, which handles one message at a time, has handled
// another one.
Nanos Network::ProcessorDone(Rank rank) {
  if (overhead_ == 0) return events_.now();
  processor_free_[rank] = std::max(processor_free_[rank], events_.now()) + overhead_;
  return processor_free_[rank];
}

Nic::Flow Network::FlowOf(Rank from, Rank to) {
  return (static_cast<Nic::Flow>(from) << 32) | static_cast<Nic::Flow>(to);
}

void Network::Depart(Id id) {
  const Transfer& transfer = transfers_[id];
  const int node = node_of_[transfer.from];
  if (node == node_of_[transfer.to]) return CopyInside(id);
  const bool fair = model_.queue == NetworkModel::Queue::kFair;
  outgoing_[node].Add(fair ? FlowOf(transfer) : 0, id, transfer.bytes);
}

void Network::CopyInside(Id id) {
  const Transfer& transfer = transfers_[id];
  double& free = copies_free_[FlowOf(transfer)];
  const double begin = std::max(free, static_cast<double>(events_.now()));
  free = begin + static_cast<double>(transfer.bytes) / model_.inside_node.bytes_per_ns();
  const Nanos end = WholeNanos(free);
  events_.At(end, [this, id] { OnLeft(id); });
  events_.At(end + latency_inside_, [this, id] { Arrive(id); });
}

void Network::OnBegun(Id id) {
  events_.After(latency_, [this, id] {
    const Transfer& transfer = transfers_[id];
    const bool fair = model_.queue == NetworkModel::Queue::kFair;
    incoming_[node_of_[transfer.to]].Add(fair ? FlowOf(transfer) : 0, id, transfer.bytes,
                                         transfer.share);
  });
}

void Network::OnLeft(Id id) {
  Transfer& transfer = transfers_[id];
  transfer.left = events_.now();
  if (transfer.arrived) {
    events_.After(latency_, [this, id] { Arrive(id); });
  }
  if (transfer.sent) Task(std::move(transfer.sent))();
}

// The last byte has passed the incoming NIC.  It may not have passed the outgoing NIC yet, if that
// one is slower.
void Network::OnArrived(Id id) {
  Transfer& transfer = transfers_[id];
  transfer.arrived = true;
  if (transfer.left < 0) return;
  const Nanos last_byte = transfer.left + latency_;
  if (last_byte > events_.now()) {
    events_.At(last_byte, [this, id] { Arrive(id); });
  } else {
    Arrive(id);
  }
}

void Network::Arrive(Id id) {
  const auto pair = delayed_.find(FlowOf(transfers_[id]));
  if (pair == delayed_.end()) return Take(id);
  Nanos& until = pair->second.until;
  until = std::max(until, events_.now() + transfers_[id].delay);
  // It is scheduled even if the time is now, since an event of the message before may be pending
  // for this time.
  events_.At(until, [this, id] { Take(id); });
}

void Network::Take(Id id) {
  const Nanos done = ProcessorDone(transfers_[id].to);
  if (done > events_.now()) {
    events_.At(done, [this, id] { Deliver(id); });
  } else {
    Deliver(id);
  }
}

void Network::Visit(StateVisitor& visitor) {
  DT_CHECK(in_flight_ == 0) << in_flight_ << " messages";
  DT_CHECK(delayed_.empty()) << "delays are not saved";
  for (Nic& nic : outgoing_) nic.Visit(visitor);
  for (Nic& nic : incoming_) nic.Visit(visitor);
  visitor.Ints("processor_free", processor_free_);
  std::vector<int64_t> messages, copies;  // {pair, value} in any order
  for (const auto& [pair, count] : messages_of_) {
    messages.insert(messages.end(), {static_cast<int64_t>(pair), count});
  }
  for (const auto& [pair, free] : copies_free_) {
    copies.insert(copies.end(), {static_cast<int64_t>(pair), std::bit_cast<int64_t>(free)});
  }
  visitor.Ints("messages", messages);
  visitor.Ints("copies", copies);
  for (size_t i = 0; i + 1 < messages.size(); i += 2) {
    messages_of_[static_cast<Nic::Flow>(messages[i])] = messages[i + 1];
  }
  for (size_t i = 0; i + 1 < copies.size(); i += 2) {
    copies_free_[static_cast<Nic::Flow>(copies[i])] = std::bit_cast<double>(copies[i + 1]);
  }
}

void Network::Deliver(Id id) {
  Transfer& transfer = transfers_[id];
  traffic_[transfer.to].bytes_received += transfer.bytes;
  traffic_[transfer.to].messages_received += 1;
  in_flight_ -= 1;
  Task delivered = std::move(transfer.delivered);
  free_.push_back(id);
  delivered();
}

}  // namespace dtrain
