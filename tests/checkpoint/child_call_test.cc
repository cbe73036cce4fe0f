#include "framework/hdf5/child_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

#include "framework/core/error.h"
#include "framework/hdf5/memory_file.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

std::string ErrorOf(const std::function<void()>& work, const ChildLimits& limits = {}) {
  return WhatOf<CheckpointError>([&] { RunInChild("read F", work, limits); });
}

TEST(ChildCall, WhatItWritesIntoAMemoryFileIsHere) {
  MemoryFile answer;
  int copy = 1;
  RunInChild("read F",
             [&] {
               answer.WriteAt(0, "forty-two");
               copy = 2;
             },
             {});
  EXPECT_EQ(answer.Content(), "forty-two");
  EXPECT_EQ(copy, 1);  // the child has its own memory
}

TEST(ChildCall, ErrorsComeThroughWithTheirHints) {
  EXPECT_EQ(MessageOf<CheckpointError>(
                [] { RunInChild("read F", [] { throw CheckpointError("what", "hint"); }, {}); }),
            "what | hint");
  EXPECT_EQ(ErrorOf([] { throw std::runtime_error("something else"); }),
            "cannot read F: something else");
  EXPECT_EQ(ErrorOf([] { throw CheckpointError(std::string(1 << 20, 'x')); }).substr(0, 9),
            "xxxxxxxxx");
}

TEST(ChildCall, CrashesAreErrors) {
  EXPECT_EQ(ErrorOf([] { ::raise(SIGSEGV); }),
            "cannot read F: the reading process crashed (Segmentation fault)");
  EXPECT_EQ(ErrorOf([] { std::abort(); }), "cannot read F: the reading process crashed (Aborted)");
  EXPECT_EQ(ErrorOf([] { ::_exit(0); }), "cannot read F: the reading process ended early");
}

TEST(ChildCall, HangsAreErrors) {
  EXPECT_EQ(ErrorOf(
                [] {
                  for (std::atomic<int> turns = 0;; ++turns) continue;
                },
                {.compute_seconds = 1}),
            "cannot read F: the reading process took more than 1 s");
  EXPECT_EQ(ErrorOf(
                [] {
                  while (true) ::pause();
                },
                {.wait_seconds = 1}),
            "cannot read F: the reading process did not end within 1 s");
}

// A sanitizer's allocator ends the process instead of throwing.
TEST(ChildCall, MemoryIsLimited) {
  const auto work = [] {
    std::vector<void*> kept;
    for (int i = 0; i < 64; ++i) kept.push_back(std::memset(::operator new(8 << 20), 1, 8 << 20));
    if (kept.back() == nullptr) throw CheckpointError("no limit");
  };
  EXPECT_EQ(ErrorOf(work), "no error");
  const auto little = [] { std::memset(std::vector<char>(32 << 20).data(), 1, 32 << 20); };
  EXPECT_EQ(ErrorOf(little, {.memory_bytes = 64 << 20}), "no error") << "beyond what there is";
  EXPECT_THAT(ErrorOf(work, {.memory_bytes = 64 << 20}),
              AnyOf("cannot read F: std::bad_alloc", HasSubstr("crashed"), HasSubstr("early")));
}

TEST(ChildCall, NothingIsPrintedAndNoChildIsLeft) {
  testing::internal::CaptureStderr();
  ErrorOf([] {
    ::write(STDERR_FILENO, "free(): invalid pointer\n", 24);
    std::abort();
  });
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
}

TEST(ChildCall, AnIgnoredEndOfChildrenChangesNothing) {
  const auto before = ::signal(SIGCHLD, SIG_IGN);
  EXPECT_EQ(ErrorOf([] {}), "no error");
  EXPECT_THAT(ErrorOf([] { std::abort(); }), HasSubstr("the reading process ended early"));
  ::signal(SIGCHLD, before);
}

// At some of the forks other threads hold the allocator's locks.
TEST(ChildCall, OtherThreadsMayAllocateMeanwhile) {
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (!stop) std::vector<std::string>(100, std::string(100, 'x')).clear();
    });
  }
  for (int i = 0; i < 30; ++i) {
    MemoryFile answer;
    RunInChild("read F",
               [&] {
                 std::string text;
                 for (int part = 0; part < 1000; ++part) text += std::to_string(part);
                 answer.WriteAt(0, text.substr(0, 5));
               },
               {});
    EXPECT_EQ(answer.Content(), "01234");
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace dtrain
