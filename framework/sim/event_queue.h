// EventQueue: virtual time.  Tasks run in the order of (time, order of scheduling) and take no time
// themselves, so one seed gives one history.
//
// One thread.  A task may schedule others, also for the present moment: they run after everything
// that was scheduled for it before.  A task that throws is gone; the queue goes on.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/core/time.h"
#include "framework/sim/task.h"

namespace dtrain {

class EventQueue {
 public:
  EventQueue() = default;
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  Nanos now() const { return now_; }
  void At(Nanos time, Task task);  // the past is our own fault
  void After(Nanos delay, Task task) { At(now_ + delay, std::move(task)); }

  // Before anything is scheduled.
  void StartAt(Nanos time);
  // Forgets what is scheduled.
  void Clear();

  // Moves time to the next event and runs it; false when there is none.
  bool RunNext();

  bool empty() const { return heap_.empty(); }
  int64_t pending() const { return static_cast<int64_t>(heap_.size()); }
  int64_t executed() const { return executed_; }

 private:
  // The heap holds small entries; the tasks stay where they are.
  struct Event {
    Nanos time;
    int64_t sequence;
    int64_t slot;
    bool Before(const Event& other) const {
      return time != other.time ? time < other.time : sequence < other.sequence;
    }
  };
  void SiftUp(size_t hole, const Event& event);
  void SiftDown(size_t hole, const Event& event);
  size_t FirstChild(size_t begin) const;
  int64_t Store(Task task);

  Nanos now_ = 0;
  int64_t scheduled_ = 0;
  int64_t executed_ = 0;
  std::vector<Event> heap_;  // four children a node: fewer cache lines on the way down than two
  std::vector<Task> tasks_;
  std::vector<int64_t> free_slots_;
};

}  // namespace dtrain
