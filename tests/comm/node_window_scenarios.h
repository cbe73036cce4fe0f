// The requirements on windows between the ranks of a node (framework/comm/node_window.h), as scenarios that each rank
// runs.  tests/comm runs them over local, where ranks are threads that map each other's segments; tests/comm_mpi runs
// them over mpi, where ranks are processes.
#pragma once

#include <gtest/gtest.h>

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "framework/comm/node_window.h"
#include "framework/comm/shared_segment.h"
#include "framework/core/error.h"
#include "tests/comm/transport_conformance.h"

namespace dtrain {

constexpr int64_t kWindowElements = 5000;  // several pages

inline std::unique_ptr<NodeWindow> MakeWindow(Transport& transport,
                                              NodeWindowOptions options = {kWindowElements}) {
  const std::vector<int> one_node(static_cast<size_t>(transport.size()), 0);
  return NodeWindow::Make(transport, one_node, options);
}

inline void SendPlace(Transport& transport, Rank to, int64_t place) {
  Await(transport, transport.Send(to, Tag::kControl, std::as_bytes(std::span(&place, 1))));
}

inline int64_t ReceivePlace(Transport& transport, Rank from) {
  int64_t place = -1;
  Await(transport,
        transport.Receive(from, Tag::kControl, std::as_writable_bytes(std::span(&place, 1))));
  return place;
}

inline void Fill(Blob& blob, float value) { std::fill_n(blob.MutableF32(), blob.size(), value); }

inline bool AllAre(const Blob& blob, float value) {
  return std::all_of(blob.f32(), blob.f32() + blob.size(), [=](float v) { return v == value; });
}

// Each rank in turn lends one Blob to all others.  After all have read it, all but one return it, and that one later.
inline void LendToAll(Transport& transport, NodeWindow& window, float value) {
  Blob blob = window.New(kWindowElements);
  ASSERT_TRUE(blob);
  Fill(blob, value);
  EXPECT_FALSE(blob.shared());
  for (Rank to = 0; to < transport.size(); ++to) {
    if (to != transport.rank()) SendPlace(transport, to, window.Lend(blob, to).value());
  }
  window.TakeBack();
  EXPECT_TRUE(blob.shared()) << "it is lent";
  transport.Barrier();  // every reader may return it from here on
  transport.Barrier();
  window.TakeBack();
  EXPECT_EQ(blob.shared(), transport.size() > 2) << "one has it still, when there are others";
  transport.Barrier();
  transport.Barrier();
  window.TakeBack();
  EXPECT_FALSE(blob.shared());
}

inline void BorrowFrom(Transport& transport, NodeWindow& window, Rank lender, float value) {
  Blob blob = window.Borrow(lender, ReceivePlace(transport, lender));
  EXPECT_EQ(blob.size(), kWindowElements);
  EXPECT_TRUE(blob.shared()) << "it is another's to write";
  EXPECT_TRUE(AllAre(blob, value));
  transport.Barrier();
  const bool last = transport.rank() == (lender + transport.size() - 1) % transport.size();
  if (!last || transport.size() == 2) blob = Blob();
  transport.Barrier();
  EXPECT_TRUE(!blob || AllAre(blob, value));
  transport.Barrier();
  blob = Blob();
  transport.Barrier();
}

inline void EveryoneReadsWhatOneHasWritten(Transport& transport) {
  const std::unique_ptr<NodeWindow> window = MakeWindow(transport);
  ASSERT_EQ(window == nullptr, transport.size() == 1);
  if (window == nullptr) return;
  for (Rank lender = 0; lender < transport.size(); ++lender) {
    const auto value = static_cast<float>(100 + lender);
    if (transport.rank() == lender) {
      LendToAll(transport, *window, value);
    } else {
      BorrowFrom(transport, *window, lender, value);
    }
  }
}

// Blobs are passed round while all ranks write, lend and read: none changes while a rank reads it.
inline void NothingIsWrittenWhileItIsRead(Transport& transport) {
  const std::unique_ptr<NodeWindow> window = MakeWindow(transport);
  if (window == nullptr) return;
  const int ranks = transport.size();
  const Rank right = (transport.rank() + 1) % ranks;
  const Rank left = (transport.rank() + ranks - 1) % ranks;
  Blob held;
  for (int round = 0; round < 300; ++round) {
    Blob mine = window->New(kWindowElements);
    ASSERT_TRUE(mine);
    Fill(mine, static_cast<float>(round * ranks + transport.rank()));
    const int64_t place = window->Lend(mine, right).value();
    mine = Blob();
    const Request send = transport.Send(right, Tag::kControl, std::as_bytes(std::span(&place, 1)));
    const Blob borrowed = window->Borrow(left, ReceivePlace(transport, left));
    Await(transport, send);
    EXPECT_TRUE(AllAre(borrowed, static_cast<float>(round * ranks + left)));
    EXPECT_TRUE(!held || AllAre(held, static_cast<float>((round - 1) * ranks + left)));
    held = borrowed;
  }
  held = Blob();
  transport.Barrier();
}

inline void WhatIsReadOutlivesItsLender(Transport& transport) {
  if (transport.size() == 1) return;
  std::unique_ptr<NodeWindow> window = MakeWindow(transport);
  if (transport.rank() == 0) {
    Blob blob = window->New(kWindowElements);
    Fill(blob, 7);
    for (Rank to = 1; to < transport.size(); ++to) {
      SendPlace(transport, to, window->Lend(blob, to).value());
    }
    blob = Blob();
    window.reset();
    transport.Barrier();
    return;
  }
  const Blob blob = window->Borrow(0, ReceivePlace(transport, 0));
  transport.Barrier();
  EXPECT_TRUE(AllAre(blob, 7));
}

// Ranks 0 and 1 share a node; each other rank has one of its own.
inline void OtherNodesBorrowNothing(Transport& transport) {
  std::vector<int> nodes(static_cast<size_t>(transport.size()));
  for (int rank = 0; rank < transport.size(); ++rank) nodes[rank] = std::max(rank - 1, 0);
  const auto window = NodeWindow::Make(transport, nodes, {kWindowElements});
  EXPECT_EQ(window != nullptr, transport.rank() < 2 && transport.size() > 1);
  if (window == nullptr) return;
  const Blob blob = window->New(kWindowElements);
  EXPECT_EQ(window->Lend(blob, 1).has_value(), transport.rank() == 0);
  if (transport.size() > 2) {
    EXPECT_EQ(window->Lend(blob, 2), std::nullopt);
  }
  BlobPools pools;
  EXPECT_EQ(window->Lend(pools.New(10), 1 - transport.rank()), std::nullopt) << "no memory of its";
}

// If one rank cannot create a window, no rank has one: none may look for a missing segment.
inline void ARankWithoutRoomLeavesAllWithout(Transport& transport) {
  struct statvfs disk = {};
  ASSERT_EQ(::statvfs("/dev/shm", &disk), 0);
  const auto all = static_cast<int64_t>(disk.f_blocks * disk.f_frsize);
  const bool asks_too_much = transport.rank() == transport.size() - 1;
  if (transport.size() == 1) return;
  ::testing::internal::CaptureStderr();
  const auto window =
      MakeWindow(transport, {.elements = asks_too_much ? all / 4 : kWindowElements});
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(window, nullptr);
  EXPECT_EQ(said.find("in /dev/shm for each: No space left on device") != std::string::npos,
            transport.rank() == 0)
      << said;
}

// A segment has no name in the file system, so that a killed rank leaves none behind.
inline void NothingHasANameInTheFolder(Transport& transport) {
  const auto names = [] {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
      if (entry.path().filename().string().starts_with("dtrain.")) names.insert(entry.path());
    }
    return names;
  };
  const std::set<std::string> before = names();
  const SharedSegment segment = SharedSegment::Create(4096);
  const auto window = MakeWindow(transport);
  EXPECT_EQ(names(), before);
  transport.Barrier();
}

// Opens a descriptor number of another process that is not a segment.
inline void WhatIsNoSegmentIsNotOpened(Transport&) {
  const SharedSegment segment = SharedSegment::Create(4096);
  EXPECT_EQ(SharedSegment::Open(segment.place()).bytes(), 4096U);
  SegmentPlace place = segment.place();
  place.descriptor = STDIN_FILENO;
  EXPECT_THROW(SharedSegment::Open(place), Error);
  place = segment.place();
  ++place.inode;
  EXPECT_THROW(SharedSegment::Open(place), Error);
}

inline std::vector<TransportScenario> NodeWindowScenarios() {
  return {{"EveryoneReadsWhatOneHasWritten", EveryoneReadsWhatOneHasWritten},
          {"NothingIsWrittenWhileItIsRead", NothingIsWrittenWhileItIsRead},
          {"WhatIsReadOutlivesItsLender", WhatIsReadOutlivesItsLender},
          {"OtherNodesBorrowNothing", OtherNodesBorrowNothing},
          {"NothingHasANameInTheFolder", NothingHasANameInTheFolder},
          {"WhatIsNoSegmentIsNotOpened", WhatIsNoSegmentIsNotOpened}};
}

}  // namespace dtrain
