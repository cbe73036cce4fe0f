// Tests sparse vectors in messages: a transport delivers them unchanged, and the simulation charges their size.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "framework/comm/local/local_world.h"
#include "framework/exchange/transport_channel.h"
#include "framework/sim/sim_channel.h"
#include "tests/sim/sim_network.h"

namespace dtrain {
namespace {

using ::testing::ElementsAre;

// Entries at 100, 103, 106, ... of [100, 1000), with the values 0.5, 1.5, ...
VectorSlice SparseSlice(BlobPools& pools, int64_t entries) {
  VectorSlice slice{pools.NewRoom(2 * (entries + 5)), 0, {100, 1000}, entries, entries + 5};
  float* const memory = slice.blob.MutableF32();
  for (int64_t i = 0; i < entries; ++i) {
    reinterpret_cast<int32_t*>(memory)[i] = static_cast<int32_t>(100 + 3 * i);
    memory[slice.stride + i] = static_cast<float>(i) + 0.5f;
  }
  return slice;
}

VectorSlice DenseSlice(BlobPools& pools) {
  return {pools.CopyOf(std::vector<float>(900, 2.5f)), 0, {100, 1000}};
}

Envelope EnvelopeWith(VectorSlice slice) {
  return {.from = 3, .to = 4, .message = {7, {1, 2}}, .slice = std::move(slice)};
}

// Returns all slices that the tests send, in order.
std::vector<VectorSlice> Slices(BlobPools& pools) {
  return {SparseSlice(pools, 40), SparseSlice(pools, 40).Part({103, 112}),
          SparseSlice(pools, 0),  DenseSlice(pools),
          SparseSlice(pools, 1),  SparseSlice(pools, 40).Part({700, 1000})};
}

void ExpectThatTheyArrived(const std::vector<VectorSlice>& got) {
  ASSERT_EQ(got.size(), 6u);
  EXPECT_EQ(got[0].entries, 40);
  EXPECT_EQ(got[0].range, (Range{100, 1000}));
  EXPECT_EQ(got[0].positions()[39], 217);
  EXPECT_EQ(got[0].values()[39], 39.5f);
  EXPECT_EQ(got[1].range, (Range{103, 112}));
  ASSERT_EQ(got[1].entries, 3);
  EXPECT_THAT(std::vector<int32_t>(got[1].positions(), got[1].positions() + 3),
              ElementsAre(103, 106, 109));
  EXPECT_THAT(std::vector<float>(got[1].values(), got[1].values() + 3),
              ElementsAre(1.5f, 2.5f, 3.5f));
  EXPECT_EQ(got[2].entries, 0);
  EXPECT_FALSE(got[3].sparse());
  EXPECT_EQ(got[3].At(100)[899], 2.5f);
  EXPECT_EQ(got[4].entries, 1);
  EXPECT_EQ(got[4].positions()[0], 100);
  EXPECT_EQ(got[5].entries, 0);
}

// Returns the traffic of rank 0, which sends all of them.
Collective::Traffic OverThreads() {
  Collective::Traffic traffic[2];
  LocalWorld::Run(2, [&](Transport& transport) {
    BlobPools pools;
    TransportChannel channel(transport, pools);
    std::vector<VectorSlice> got;
    if (transport.rank() == 0) {
      for (VectorSlice& slice : Slices(pools)) channel.Send(1, EnvelopeWith(std::move(slice)));
      while (channel.Busy()) channel.Next();
    } else {
      while (got.size() < 6) {
        if (auto envelope = channel.Next()) got.push_back(*envelope->slice);
      }
      ExpectThatTheyArrived(got);
    }
    traffic[transport.rank()] = channel.traffic();
    transport.Barrier();
  });
  EXPECT_EQ(traffic[0].bytes_sent, traffic[1].bytes_received);
  return traffic[0];
}

Collective::Traffic InVirtualTime() {
  BlobPools pools;
  EventQueue events;
  Network network(events, RoundNumbers(), 2);
  std::vector<SimChannel*> boxes;
  SimChannel sender(0, network, boxes, [](Rank) {}), receiver(1, network, boxes, [](Rank) {});
  boxes = {&sender, &receiver};
  for (VectorSlice& slice : Slices(pools)) sender.Send(1, EnvelopeWith(std::move(slice)));
  while (events.RunNext()) {
  }
  std::vector<VectorSlice> got;
  while (auto envelope = receiver.Next()) got.push_back(*envelope->slice);
  ExpectThatTheyArrived(got);
  return sender.traffic();
}

TEST(SparseMessages, ArriveWholeAndCostTheSameBytesEverywhere) {
  const Collective::Traffic real = OverThreads(), simulated = InVirtualTime();
  EXPECT_EQ(real.bytes_sent, simulated.bytes_sent);
  EXPECT_EQ(real.messages, simulated.messages);
  const int64_t headers = 6 * (22 + 2 * 8 + 16) + 5 * 8;
  EXPECT_EQ(real.bytes_sent, headers + 8 * (40 + 3 + 0 + 1 + 0) + 4 * 900);
}

// --- the pools for received sparse messages

TEST(BlobPools, RoomIsAtMostAnEighthTooMuch) {
  for (int64_t elements = 1; elements < 5'000'000; elements += 1 + elements / 7) {
    const int64_t capacity = BlobPools::CapacityFor(elements);
    EXPECT_GE(capacity, elements);
    EXPECT_LE(capacity, std::max(elements + elements / 8, BlobPools::kLeastRoom));
    EXPECT_EQ(BlobPools::CapacityFor(capacity), capacity);
  }
}

TEST(BlobPools, FewCapacitiesServeAllSizes) {
  std::set<int64_t> capacities;
  for (int64_t elements = 1; elements <= 1'000'000; ++elements) {
    capacities.insert(BlobPools::CapacityFor(elements));
  }
  EXPECT_LE(capacities.size(), 8u * 14 + 1);
}

TEST(BlobPools, ABufferIsUsedAgainForAnotherSize) {
  BlobPools pools;
  const float* const memory = pools.NewRoom(1000).f32();
  EXPECT_EQ(pools.NewRoom(1010).f32(), memory);
  EXPECT_EQ(pools.New(39'001).size(), 39'001) << "dense arenas are exact";
}

}  // namespace
}  // namespace dtrain
