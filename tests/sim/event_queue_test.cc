#include "framework/sim/event_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "framework/core/random.h"

namespace dtrain {
namespace {

TEST(Task, RunsOnceAndIsEmptyAfterwards) {
  int runs = 0;
  Task task([&runs] { ++runs; });
  EXPECT_TRUE(task);
  task();
  EXPECT_EQ(runs, 1);
  EXPECT_FALSE(task);
  EXPECT_FALSE(Task());
}

TEST(Task, MovesWhatItOwns) {
  auto number = std::make_unique<int>(7);
  int seen = 0;
  Task task([number = std::move(number), &seen] { seen = *number; });
  Task moved = std::move(task);
  EXPECT_FALSE(task);  // NOLINT: what is left of it is what is tested
  Task assigned;
  assigned = std::move(moved);
  assigned();
  EXPECT_EQ(seen, 7);
}

template <size_t kBytes>
void ExpectDestroyedOnce() {
  const auto alive = std::make_shared<int>(0);
  std::array<char, kBytes> ballast{};
  {
    Task unused([alive, ballast] { EXPECT_EQ(ballast[0], 0); });
    Task moved = std::move(unused);
    EXPECT_EQ(alive.use_count(), 2);
    Task run([alive, ballast] { EXPECT_EQ(ballast[0], 0); });
    run();
    EXPECT_EQ(alive.use_count(), 2);
    moved = Task([alive] {});
    EXPECT_EQ(alive.use_count(), 2);
  }
  EXPECT_EQ(alive.use_count(), 1);
}

TEST(Task, DestroysItsCapturesOnceInsideAndOnTheHeap) {
  ExpectDestroyedOnce<8>();
  ExpectDestroyedOnce<500>();
}

TEST(TaskDeathTest, AnEmptyOneIsNotCalled) { EXPECT_DEATH(Task()(), "an empty task is called"); }

TEST(EventQueue, RunsByTimeThenByOrderOfScheduling) {
  EventQueue queue;
  std::string order;
  queue.At(20, [&] { order += "c"; });
  queue.At(10, [&] { order += "a"; });
  queue.At(20, [&] { order += "d"; });
  queue.At(10, [&] { order += "b"; });
  EXPECT_EQ(queue.pending(), 4);
  std::vector<Nanos> times;
  while (queue.RunNext()) times.push_back(queue.now());
  EXPECT_EQ(order, "abcd");
  EXPECT_EQ(times, (std::vector<Nanos>{10, 10, 20, 20}));
  EXPECT_EQ(queue.executed(), 4);
  EXPECT_TRUE(queue.empty());
  EXPECT_FALSE(queue.RunNext());
  EXPECT_EQ(queue.now(), 20);
}

TEST(EventQueue, AnEventMaySchedulePresentAndFuture) {
  EventQueue queue;
  std::string order;
  queue.At(5, [&] {
    order += "a";
    queue.After(0, [&] { order += "c"; });
    queue.After(1, [&] { order += "d"; });
  });
  queue.At(5, [&] { order += "b"; });
  while (queue.RunNext()) {
  }
  EXPECT_EQ(order, "abcd");
  EXPECT_EQ(queue.now(), 6);
}

TEST(EventQueue, SortsLikeAStableSort) {
  EventQueue queue;
  const Random random(1, Purpose::kSelfTest);
  std::vector<std::pair<Nanos, int>> seen;
  std::vector<std::pair<Nanos, int>> expected;
  for (int i = 0; i < 5000; ++i) {
    const auto time = static_cast<Nanos>(random.Below(i, 500));
    expected.emplace_back(time, i);
    queue.At(time, [&, i] { seen.emplace_back(queue.now(), i); });
  }
  while (queue.RunNext()) {
  }
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(seen, expected);
}

TEST(EventQueue, GoesOnAfterATaskThatThrows) {
  EventQueue queue;
  bool ran = false;
  queue.At(1, [] { throw std::runtime_error("lost"); });
  queue.At(2, [&] { ran = true; });
  EXPECT_THROW(queue.RunNext(), std::runtime_error);
  EXPECT_EQ(queue.now(), 1);
  EXPECT_TRUE(queue.RunNext());
  EXPECT_TRUE(ran);
}

TEST(EventQueueDeathTest, ThePastCannotBeScheduled) {
  EventQueue queue;
  queue.At(10, [] {});
  queue.RunNext();
  EXPECT_DEATH(queue.At(9, [] {}), "event at 9 ns, which has passed: now is 10");
  EXPECT_DEATH(queue.At(11, Task()), "event without a task at 11 ns");
}

}  // namespace
}  // namespace dtrain
