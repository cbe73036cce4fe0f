#include "framework/core/bytes.h"

#include <gtest/gtest.h>

#include "framework/core/layout.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

TEST(Bytes, WhatIsWrittenIsRead) {
  ByteWriter writer;
  writer.Value<int64_t>(-5);
  writer.Text("two\nlines");
  writer.Values(std::vector<float>{1.5f, -2});
  writer.Values(std::vector<int64_t>{});
  writer.Value(true);
  const std::string bytes = writer.Take();
  ByteReader reader(bytes);
  EXPECT_EQ(reader.Value<int64_t>(), -5);
  EXPECT_EQ(reader.Text(), "two\nlines");
  EXPECT_EQ(reader.Values<float>(), (std::vector<float>{1.5f, -2}));
  EXPECT_TRUE(reader.Values<int64_t>().empty());
  EXPECT_FALSE(reader.AtEnd());
  EXPECT_TRUE(reader.Value<bool>());
  EXPECT_TRUE(reader.AtEnd());
}

TEST(Bytes, AnArenasLayoutIsReadAsItWasWritten) {
  const ArenaLayout layout = {{{"w", {2, 3}, {0, 6}}, {"b", {3}, {6, 9}, false}}};
  const auto read = FromBytes<ArenaLayout>(ToBytes(layout));
  ASSERT_EQ(read.entries.size(), 2U);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(read.entries[i].name, layout.entries[i].name);
    EXPECT_EQ(read.entries[i].shape, layout.entries[i].shape);
    EXPECT_EQ(read.entries[i].range, layout.entries[i].range);
    EXPECT_EQ(read.entries[i].weight_decay, layout.entries[i].weight_decay);
  }
}

TEST(BytesDeathTest, ReadingPastTheEndStops) {
  const std::string three(3, 'x');
  ByteReader reader(three);
  EXPECT_DEATH(reader.Value<int64_t>(), "8 bytes wanted, 3 left");
}

TEST(BytesDeathTest, APartOfAValueStops) {
  const std::string bytes = ToBytes(std::string(5, 'x'));
  ByteReader reader(bytes);
  EXPECT_DEATH(reader.Values<int32_t>(), "5 bytes are no whole values");
}

TEST(Bytes, InAFileTheyAreTheFilesFault) {
  const auto error_of = [](const std::string& bytes) {
    return WhatOf<RunFileError>([&] { FromFileBytes<ArenaLayout>(bytes, "a.bin"); });
  };
  EXPECT_EQ(error_of("xyz"), "a.bin is damaged: 8 bytes wanted, 3 left");
  EXPECT_EQ(error_of(ToBytes(ArenaLayout{}) + "more"),
            "a.bin is damaged: bytes follow its last value");
  const std::string numbers = ToBytes(std::string(5, 'x'));
  ByteReader reader(numbers, "a.bin");
  EXPECT_EQ(WhatOf<RunFileError>([&] { reader.Values<int32_t>(); }),
            "a.bin is damaged: 5 bytes are no whole values");
}

}  // namespace
}  // namespace dtrain
