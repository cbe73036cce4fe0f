#include "framework/core/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/support/message_of.h"

namespace dtrain {
namespace {

using ::testing::HasSubstr;

constexpr size_t kTooMany = size_t{1} << 46;  // more than a process can address

TEST(Memory, AnErrorSaysForWhatAndHowMuch) {
  EXPECT_STREQ(NoMemoryError(3'000'000).what(), "there is no memory for 3.0 MB more");
  EXPECT_STREQ(NoMemoryError(3'000'000, "a cat").what(),
               "there is no memory for 3.0 MB more, for a cat");
  EXPECT_STREQ(NoMemoryError(0, "a cat").what(), "there is no memory, for a cat");
  EXPECT_EQ(NoMemoryError(1).code(), ExitCode::kUsage);
}

TEST(Memory, TheInnermostPurposeCounts) {
  const auto fail = [](const std::string& purpose) -> int { throw NoMemoryError(8, purpose); };
  EXPECT_EQ(WhatOf<NoMemoryError>([&] { WithMemoryFor("a dog", [&] { return fail(""); }); }),
            "there is no memory for 8 B more, for a dog");
  EXPECT_EQ(WhatOf<NoMemoryError>([&] { WithMemoryFor("a dog", [&] { return fail("a cat"); }); }),
            "there is no memory for 8 B more, for a cat");
  EXPECT_EQ(WithMemoryFor("a dog", [] { return 42; }), 42);
}

TEST(Memory, WhatIsNotGrantedIsAnError) {
  RequireMemory(size_t{1} << 20);
  EXPECT_THROW(RequireMemory(kTooMany * 4), NoMemoryError);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(Memory, NewSaysHowMuchItWasAskedFor) {
  const auto allocate = [] { std::vector<char>(kTooMany).at(1) = 2; };
  try {
    allocate();
    FAIL() << "so much was granted";
  } catch (const std::bad_alloc& error) {
    EXPECT_EQ(ToError(error).bytes(), kTooMany);
  }
  EXPECT_THAT(WhatOf<NoMemoryError>([&] { WithMemoryFor("a whale", allocate); }),
              HasSubstr("more, for a whale"));
}
#endif

TEST(Memory, ALibrarysOwnErrorHasNoSize) { EXPECT_EQ(ToError(std::bad_alloc()).bytes(), 0u); }

}  // namespace
}  // namespace dtrain
