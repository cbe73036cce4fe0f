// EventQueue: virtual time.  Tasks run in the order of (time, order of scheduling) and take no
// virtual time themselves, so one seed gives one history.
//
// It is used by one thread.  A task may schedule others, also for the current time: they run after
// everything that was scheduled for that time before.  A task that throws is removed; the queue
// stays usable.
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
  void At(Nanos time, Task task);  // `time` must not be in the past (DT_CHECK)
  void After(Nanos delay, Task task) { At(now_ + delay, std::move(task)); }

  // Sets the initial time.  Call it before anything is scheduled.
  void StartAt(Nanos time);
  // Removes all scheduled tasks.
  void Clear();

  // Advances time to the next event and runs it.  Returns false if there is none.
  bool RunNext();

  bool empty() const { return heap_.empty(); }
  int64_t pending() const { return static_cast<int64_t>(heap_.size()); }
  int64_t executed() const { return executed_; }

 private:
  // The heap has small entries, so that tasks need not be moved.
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
  std::vector<Event> heap_;  // four children per node: fewer cache lines on the way down than two
  std::vector<Task> tasks_;
  std::vector<int64_t> free_slots_;
};

}  // namespace dtrain
