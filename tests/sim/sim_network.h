// A network for tests that records when messages are sent and delivered.
#pragma once

#include <vector>

#include "framework/sim/network.h"

namespace dtrain {

// Round numbers: between nodes one byte a nanosecond and a latency of 100 ns, inside a node ten bytes a nanosecond and
// 10 ns.
inline NetworkModel RoundNumbers(NetworkModel::Queue queue = NetworkModel::Queue::kFair) {
  NetworkModel model;
  model.between_nodes = {.bandwidth_gbit_s = 8, .latency_us = 0.1};
  model.inside_node = {.bandwidth_gbit_s = 80, .latency_us = 0.01};
  model.queue = queue;
  return model;
}
inline constexpr double kGamma = 0.25;  // nanoseconds per byte added

struct NotedMessage {
  Rank from;
  Rank to;
  int64_t bytes;
  Nanos start;
  Nanos sent = -1;
  Nanos delivered = -1;
};

class NotingNetwork {
 public:
  NotingNetwork(const NetworkModel& model, int ranks, std::vector<int> node_of = {})
      : network(events, model, ranks, std::move(node_of)) {}

  // Sends at time `start`.  Returns the index of the message.
  int Send(Rank from, Rank to, int64_t bytes, Nanos start = 0) {
    const int index = static_cast<int>(messages.size());
    messages.push_back({from, to, bytes, start});
    events.At(start, [this, index] { Start(index); });
    return index;
  }

  void Run() {
    while (events.RunNext()) {
    }
  }

  std::vector<Nanos> delivered() const {
    std::vector<Nanos> times;
    for (const NotedMessage& message : messages) times.push_back(message.delivered);
    return times;
  }

  EventQueue events;
  Network network;
  std::vector<NotedMessage> messages;
  std::vector<int> order;  // messages in the order of delivery

 private:
  void Start(int index) {
    const NotedMessage& message = messages[index];
    network.Send(
        message.from, message.to, message.bytes,
        [this, index] {
          messages[index].delivered = events.now();
          order.push_back(index);
        },
        [this, index] { messages[index].sent = events.now(); });
  }
};

}  // namespace dtrain
