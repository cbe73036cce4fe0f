// Tests which devices have selection passes. tests/cuda checks what the passes return.
#include "framework/compress/device_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/core/error.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

// The CPU has none: its memory is scanned directly (scan.h).
TEST(DeviceValues, ADeviceWithoutThemIsNamed) {
  EXPECT_EQ(MessageOf<ConfigError>([] { MakeDeviceValues(Device{}); }),
            "device 'cpu' has no selections | device: cpu");
}

TEST(DeviceValues, ADeviceIsRegisteredOnceAndFound) {
  const auto none = [](const Device&) { return std::unique_ptr<DeviceValues>(); };
  Device cuda;
  cuda.kind = DeviceKind::kCuda;
  EXPECT_THROW(MakeDeviceValues(cuda), ConfigError);
  EXPECT_TRUE(AddDeviceValues(DeviceKind::kCuda, none));
  EXPECT_FALSE(AddDeviceValues(DeviceKind::kCuda, none));
  EXPECT_EQ(MakeDeviceValues(cuda), nullptr);
}

}  // namespace
}  // namespace dtrain
