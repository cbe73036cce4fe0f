// Nic: one direction of a NIC, shared by the flows that have messages queued there.
//
// The messages of a flow pass one after the other.  All flows with messages share the rate in
// proportion to the weights of their first messages (processor sharing).  A single flow for all
// messages is a first-come first-served queue.  An event costs O(log flows): served(t), the bytes
// that a flow of weight one would have passed since the beginning, grows at rate / weights.  So a
// message that begins at served = v ends at served = v + bytes / weight, however many flows come
// and go meanwhile.  (Parekh and Gallager, "A generalized processor sharing approach to flow
// control", IEEE/ACM ToN 1993, section III: virtual time.)
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <unordered_map>
#include <vector>

#include "framework/cluster/network_model.h"
#include "framework/sim/event_queue.h"

namespace dtrain {

class Nic {
 public:
  using Flow = uint64_t;
  using MessageId = int32_t;
  // Holds functions that are called with a message, from an event.
  struct Listener {
    std::function<void(MessageId)> begun;   // its first byte begins to pass; must not call Add
    std::function<void(MessageId)> passed;  // its last byte has passed
  };

  Nic(EventQueue& events, const LinkModel& link, Listener listener);
  Nic(const Nic&) = delete;
  Nic& operator=(const Nic&) = delete;

  // Call it before the first message.
  void SetLink(const LinkModel& link) { rate_ = TokenBucket(link); }

  // Queues a message after those of its flow.
  void Add(Flow flow, MessageId id, int64_t bytes, double weight = 1);

  Nanos busy() const;  // total time with at least one message, until now

  // Call it only when there is no message.
  void Visit(StateVisitor& visitor);

 private:
  using Place = int32_t;  // index of a message in queued_
  static constexpr Place kNone = -1;
  struct Queued {
    Flow flow;
    MessageId id;
    Place next;  // the next message of the same flow
    double bytes;
    double weight;
  };
  struct Front {  // the first message of a flow, which is passing
    double end;   // value of served_ at its end
    int64_t sequence;
    Place place;
    bool operator>(const Front& other) const {
      return end != other.end ? end > other.end : sequence > other.sequence;
    }
  };

  void AdvanceTo(double now);
  void AdvanceWithin(double now);
  void FinishFront(double when);
  void Begin(Place place);
  Place Store(const Queued& queued);
  double NextEnd() const;
  void Arm();
  void OnTimer();

  EventQueue& events_;
  TokenBucket rate_;
  Listener listener_;

  // Time is kept in fractions of a nanosecond here: rounding each message up would slow the NIC.
  double last_ = 0;  // the time that the members below are valid for
  double busy_ = 0;
  double served_ = 0;
  double weights_ = 0;  // sum over the fronts
  int64_t begun_ = 0;
  std::priority_queue<Front, std::vector<Front>, std::greater<>> fronts_;
  std::unordered_map<Flow, Place> tails_;  // last message of each flow
  std::vector<Queued> queued_;
  std::vector<Place> free_;

  Nanos timer_ = -1;               // the earliest pending event of this NIC; -1: none
  std::vector<MessageId> passed_;  // passed but not reported yet; the timer reports them
  std::vector<MessageId> reporting_;
};

}  // namespace dtrain
