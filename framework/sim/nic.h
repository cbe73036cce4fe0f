// Nic: one direction of a NIC, shared by the flows that have messages queued there.
//
// Each flow's messages pass one after the other; all flows that have some share the rate by the
// weights of their first messages (processor sharing).  A single flow for everything is a
// first-come first-served queue.  An event costs O(log flows): served(t), the bytes that a weight
// of one which was there all the time has passed, grows at rate / weights, so a message that begins
// at served = v ends at served = v + bytes / weight, however many flows come and go meanwhile.
// (Parekh and Gallager, "A generalized processor sharing approach to flow control", IEEE/ACM ToN
// 1993, section III: virtual time.)
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <unordered_map>
#include <vector>

#include "framework/sim/event_queue.h"
#include "framework/sim/network_model.h"

namespace dtrain {

class Nic {
 public:
  using Flow = uint64_t;
  using MessageId = int32_t;
  // Called with the message, from an event.
  struct Listener {
    std::function<void(MessageId)> begun;   // its first byte passes.  Must not call Add
    std::function<void(MessageId)> passed;  // its last byte has passed
  };

  Nic(EventQueue& events, const LinkModel& link, Listener listener);
  Nic(const Nic&) = delete;
  Nic& operator=(const Nic&) = delete;

  // Queues a message behind those of its flow.
  void Add(Flow flow, MessageId id, int64_t bytes, double weight = 1);

  Nanos busy() const;  // time with a message there, until now

  // When no message is there.
  void Visit(StateVisitor& visitor);

 private:
  using Place = int32_t;  // of a message in queued_
  static constexpr Place kNone = -1;
  struct Queued {
    Flow flow;
    MessageId id;
    Place next;  // of the same flow
    double bytes;
    double weight;
  };
  struct Front {  // the message of a flow that is passing
    double end;   // as served_
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
  double last_ = 0;  // until when everything below is accounted for
  double busy_ = 0;
  double served_ = 0;
  double weights_ = 0;  // of the fronts
  int64_t begun_ = 0;
  std::priority_queue<Front, std::vector<Front>, std::greater<>> fronts_;
  std::unordered_map<Flow, Place> tails_;  // of each flow that is there
  std::vector<Queued> queued_;
  std::vector<Place> free_;

  Nanos timer_ = -1;               // the earliest event that is pending for this NIC; -1: none
  std::vector<MessageId> passed_;  // found by Add at the very time of the timer, which reports them
  std::vector<MessageId> reporting_;
};

}  // namespace dtrain
