// Tests when a device's work counts as done: at once on the CPU, otherwise when its queue reports
// it.
#include "framework/device/device.h"

#include <gtest/gtest.h>

#include "tests/support/lazy_queue.h"

namespace dtrain {
namespace {

TEST(ReadyEvent, OfTheCpuHasComeToPass) {
  const ReadyEvent event = Device{}.Record();
  EXPECT_TRUE(event.Done());
  event.Wait();
}

TEST(ReadyEvent, OfAQueueComesToPassInItsOrder) {
  const auto queue = std::make_shared<LazyQueue>();
  Device device;
  device.queue = queue;
  const ReadyEvent first = device.Record(), second = device.Record(), third = device.Record();
  EXPECT_FALSE(first.Done());
  second.Wait();
  EXPECT_TRUE(first.Done());
  EXPECT_TRUE(second.Done());
  EXPECT_FALSE(third.Done());
}

}  // namespace
}  // namespace dtrain
