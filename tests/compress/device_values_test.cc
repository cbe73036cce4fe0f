// Which devices selections have passes for; what the passes find is tests/cuda's matter.
#include "framework/compress/device_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/core/error.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

// The CPU's memory is scanned as it is (scan.h).
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
