// The network model as plain loops: a fluid that moves from one event to the next and looks at every message each time.
// O(messages^2); the reference for the real one.
#pragma once

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

#include "framework/cluster/noise.h"
#include "tests/sim/sim_network.h"

namespace dtrain {

class FluidNetwork {
 public:
  FluidNetwork(const NetworkModel& model, const std::vector<NotedMessage>& messages)
      : model_(model) {
    for (const NotedMessage& noted : messages) {
      const auto bytes = static_cast<double>(noted.bytes);
      const auto start = static_cast<double>(noted.start);
      messages_.push_back({noted.from, noted.to, 1, {start, bytes}, {kNever, bytes}});
    }
    Weigh();
    outgoing_.assign(kRanks, {static_cast<double>(model.between_nodes.bucket_bytes)});
    incoming_ = outgoing_;
  }

  // Returns the delivery time of each message.
  std::vector<double> Run() {
    while (Step()) {
    }
    std::vector<double> delivered;
    for (const Message& message : messages_) {
      delivered.push_back(std::max(message.in.done, message.out.done + Latency()));
    }
    return delivered;
  }

  // Returns the largest share of a message over the smallest.
  double SpreadOfShares() const {
    const auto [least, most] = std::ranges::minmax(messages_, {}, &Message::weight);
    return most.weight / least.weight;
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  static constexpr double kTiny = 1e-6;
  static constexpr int kRanks = 16;

  struct Passage {  // the passage through one NIC
    double arrival;
    double left;  // bytes left
    double done = kNever;
    double rate = 0;
    bool begun = false;
  };
  struct Message {
    Rank from;
    Rank to;
    double weight;
    Passage out;
    Passage in;

    double WeightAt(Passage Message::*side) const { return side == &Message::in ? weight : 1; }
  };
  struct FluidNic {
    double tokens;
    double active = 0;  // sum of the weights of the messages it serves
  };

  // Counts the messages of a pair in the order of their starts.
  void Weigh() {
    std::vector<Message*> by_start;
    for (Message& message : messages_) by_start.push_back(&message);
    std::stable_sort(by_start.begin(), by_start.end(), [](const Message* a, const Message* b) {
      return a->out.arrival < b->out.arrival;
    });
    std::map<std::pair<Rank, Rank>, int64_t> sent;
    for (Message* message : by_start) {
      message->weight = StreamShare(model_.share_deviation, 0, message->from, message->to,
                                    sent[{message->from, message->to}]++);
    }
  }

  double Latency() const { return model_.between_nodes.latency_us * 1e3; }
  double Rate() const { return model_.between_nodes.bytes_per_ns(); }
  bool Waits(const Passage& passage) const {
    return passage.arrival <= now_ + kTiny && passage.done == kNever;
  }

  // Returns whether `a` must let `b` pass first: both use this NIC, and they are of one pair or `b` arrived first.
  bool Yields(const Message& a, const Message& b, Passage Message::*side) const {
    const bool out = side == &Message::out;
    const bool same_pair = a.from == b.from && a.to == b.to;
    const bool same_nic = out ? a.from == b.from : a.to == b.to;
    const bool fifo = model_.queue == NetworkModel::Queue::kFifo;
    if (!(fifo ? same_nic : same_pair) || !Waits(b.*side)) return false;
    const double a_came = (a.*side).arrival;
    const double b_came = (b.*side).arrival;
    return b_came < a_came || (b_came == a_came && &b < &a);
  }

  bool IsServed(const Message& message, Passage Message::*side) const {
    if (!Waits(message.*side)) return false;
    return std::none_of(messages_.begin(), messages_.end(), [&](const Message& other) {
      return &other != &message && Yields(message, other, side);
    });
  }

  double NicRate(const FluidNic& nic) const {
    return nic.tokens > kTiny ? model_.between_nodes.line_bytes_per_ns() : Rate();
  }

  void Share(Passage Message::*side, Rank Message::*place, std::vector<FluidNic>& nics) {
    for (FluidNic& nic : nics) nic.active = 0;
    for (Message& message : messages_) {
      const bool served = IsServed(message, side);
      (message.*side).rate = served ? 1 : 0;
      nics[message.*place].active += served ? message.WeightAt(side) : 0;
    }
    for (Message& message : messages_) {
      const FluidNic& nic = nics[message.*place];
      if ((message.*side).rate > 0) {
        (message.*side).rate = NicRate(nic) * message.WeightAt(side) / nic.active;
      }
    }
  }

  double NextOf(const Passage& passage) const {
    if (passage.done != kNever) return kNever;
    if (passage.rate > 0) return now_ + passage.left / passage.rate;
    return passage.arrival > now_ + kTiny ? passage.arrival : kNever;
  }

  double NextEmptyBucket(const FluidNic& nic) const {
    if (nic.active == 0 || nic.tokens <= kTiny) return kNever;
    return now_ + nic.tokens / (NicRate(nic) - Rate());
  }

  void Move(Passage& passage, double ns) {
    passage.left -= passage.rate * ns;
    if (passage.rate > 0 && passage.left <= kTiny) passage.done = now_;
  }

  void Move(FluidNic& nic, double ns) {
    const double used = nic.active > 0 ? NicRate(nic) : 0;
    nic.tokens = std::clamp(nic.tokens + (Rate() - used) * ns, 0.0,
                            static_cast<double>(model_.between_nodes.bucket_bytes));
  }

  bool Step() {
    Share(&Message::out, &Message::from, outgoing_);
    for (Message& message : messages_) {
      if (message.out.rate == 0 || message.out.begun) continue;
      message.out.begun = true;
      message.in.arrival = now_ + Latency();
    }
    Share(&Message::in, &Message::to, incoming_);
    double next = kNever;
    for (const Message& message : messages_) {
      next = std::min({next, NextOf(message.out), NextOf(message.in)});
    }
    if (next == kNever) return false;
    for (int rank = 0; rank < kRanks; ++rank) {
      next = std::min({next, NextEmptyBucket(outgoing_[rank]), NextEmptyBucket(incoming_[rank])});
    }
    const double ns = next - now_;
    now_ = next;
    for (int rank = 0; rank < kRanks; ++rank) {
      Move(outgoing_[rank], ns);
      Move(incoming_[rank], ns);
    }
    for (Message& message : messages_) {
      Move(message.out, ns);
      Move(message.in, ns);
    }
    return true;
  }

  NetworkModel model_;
  std::vector<Message> messages_;
  std::vector<FluidNic> outgoing_;
  std::vector<FluidNic> incoming_;
  double now_ = 0;
};

}  // namespace dtrain
