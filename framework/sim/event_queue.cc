#include "framework/sim/event_queue.h"

#include <algorithm>

namespace dtrain {
namespace {

constexpr size_t kChildren = 4;

}  // namespace

void EventQueue::At(Nanos time, Task task) {
  DT_CHECK(time >= now_) << "event at " << time << " ns, which has passed: now is " << now_;
  DT_CHECK(task) << "event without a task at " << time << " ns";
  const Event event{time, scheduled_++, Store(std::move(task))};
  heap_.emplace_back();
  SiftUp(heap_.size() - 1, event);
}

void EventQueue::StartAt(Nanos time) {
  DT_CHECK(scheduled_ == 0);
  now_ = time;
}

void EventQueue::Clear() {
  heap_.clear();
  tasks_.clear();
  free_slots_.clear();
}

bool EventQueue::RunNext() {
  if (heap_.empty()) return false;
  const Event next = heap_.front();
  const Event last = heap_.back();
  heap_.pop_back();
  if (!heap_.empty()) SiftDown(0, last);
  now_ = next.time;
  ++executed_;
  free_slots_.push_back(next.slot);
  // The task is moved out first, since tasks that it schedules may reuse its slot or reallocate
  // tasks_.
  Task task = std::move(tasks_[next.slot]);
  task();
  return true;
}

int64_t EventQueue::Store(Task task) {
  if (free_slots_.empty()) {
    tasks_.push_back(std::move(task));
    return static_cast<int64_t>(tasks_.size()) - 1;
  }
  const int64_t slot = free_slots_.back();
  free_slots_.pop_back();
  tasks_[slot] = std::move(task);
  return slot;
}

void EventQueue::SiftUp(size_t hole, const Event& event) {
  while (hole > 0) {
    const size_t parent = (hole - 1) / kChildren;
    if (!event.Before(heap_[parent])) break;
    heap_[hole] = heap_[parent];
    hole = parent;
  }
  heap_[hole] = event;
}

void EventQueue::SiftDown(size_t hole, const Event& event) {
  for (;;) {
    const size_t children = hole * kChildren + 1;
    if (children >= heap_.size()) break;
    const size_t child = FirstChild(children);
    if (!heap_[child].Before(event)) break;
    heap_[hole] = heap_[child];
    hole = child;
  }
  heap_[hole] = event;
}

size_t EventQueue::FirstChild(size_t begin) const {
  const size_t end = std::min(begin + kChildren, heap_.size());
  size_t first = begin;
  for (size_t child = begin + 1; child < end; ++child) {
    if (heap_[child].Before(heap_[first])) first = child;
  }
  return first;
}

}  // namespace dtrain
