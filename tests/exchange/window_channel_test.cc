// Tests messages between ranks of a node that share a window: the same messages in the same order as without one.
#include <gtest/gtest.h>

#include <numeric>

#include "framework/comm/local/local_world.h"
#include "framework/exchange/transport_channel.h"
#include "tests/exchange/exchange_fixture.h"

namespace dtrain {
namespace {

constexpr int64_t kElements = 3000;

void FinishSending(Transport& transport, MessageChannel& channel) {
  while (channel.Sending()) EXPECT_FALSE(channel.Next());
  transport.Barrier();
}

Blob Counting(Blob blob) {
  std::iota(blob.MutableF32(), blob.MutableF32() + blob.size(), 0.0f);
  return blob;
}

// Runs `body(transport, channel, pools)` on each of `ranks` ranks of one node.
template <class Body>
void WithWindows(int ranks, Body body) {
  LocalWorld::Run(ranks, [&](Transport& transport) {
    const std::vector<int> one_node(static_cast<size_t>(ranks), 0);
    const auto window = NodeWindow::Make(transport, one_node, {.elements = kElements});
    BlobPools pools;
    pools.SendFrom(window.get());
    TransportChannel channel(transport, pools, window.get());
    body(transport, channel, pools);
  });
}

// Returns a dense vector, a part of it, a sparse one, an empty one, and one in ordinary memory.
std::vector<VectorSlice> LayerGradientsOf(BlobPools& pools) {
  const VectorSlice whole{Counting(pools.NewToSend(kElements)), 0, {0, kElements}};
  VectorSlice sparse{pools.NewToSend(kElements), 0, {0, kElements}, 40, 50};
  float* const memory = sparse.blob.MutableF32();
  for (int i = 0; i < 40; ++i) {
    reinterpret_cast<int32_t*>(memory)[i] = 70 * i;
    memory[50 + i] = static_cast<float>(i);
  }
  return {whole,
          whole.Part({1000, 1200}),
          sparse,
          sparse.Part({140, 700}),
          {Counting(pools.New(200)), 0, {0, 200}}};
}

void ExpectSame(const VectorSlice& got, const VectorSlice& sent) {
  EXPECT_EQ(got.range, sent.range);
  ASSERT_EQ(got.entries, sent.entries);
  if (!sent.sparse()) {
    for (int64_t i = sent.range.begin; i < sent.range.end; ++i) EXPECT_EQ(*got.At(i), *sent.At(i));
    return;
  }
  for (int64_t i = 0; i < sent.entries; ++i) {
    EXPECT_EQ(got.positions()[i], sent.positions()[i]);
    EXPECT_EQ(got.values()[i], sent.values()[i]);
  }
}

TEST(WindowChannel, MessagesComeAsWithoutOneAndInOrder) {
  constexpr int kRounds = 20;
  WithWindows(3, [](Transport& transport, TransportChannel& channel, BlobPools& pools) {
    const std::vector<VectorSlice> slices = LayerGradientsOf(pools);  // equal on every rank
    if (transport.rank() > 0) {
      for (int i = 0; i < kRounds * static_cast<int>(slices.size() + 1); ++i) {
        const size_t slice = static_cast<size_t>(i) % (slices.size() + 1);
        Envelope envelope{.message = {.kind = i}};
        if (slice < slices.size()) envelope.slice = slices[slice];
        channel.Send(0, std::move(envelope));
      }
      FinishSending(transport, channel);
      int64_t lent = 0;
      for (size_t i = 0; i + 1 < slices.size(); ++i) lent += slices[i].bytes();
      EXPECT_EQ(channel.traffic().bytes_lent, kRounds * lent) << "not the one in ordinary memory";
      return;
    }
    std::vector<int> next(3, 0);
    for (int i = 0; i < 2 * kRounds * static_cast<int>(slices.size() + 1); ++i) {
      const Envelope envelope = NextEnvelope(channel);
      EXPECT_EQ(envelope.message.kind, next[envelope.from_rank]);
      const size_t slice = static_cast<size_t>(next[envelope.from_rank]++) % (slices.size() + 1);
      ASSERT_EQ(envelope.slice.has_value(), slice < slices.size());
      if (!envelope.slice) continue;
      ExpectSame(*envelope.slice, slices[slice]);
      EXPECT_EQ(envelope.slice->blob.shared(), slice + 1 < slices.size()) << "read where it lies";
    }
    FinishSending(transport, channel);
  });
}

// A worker has two gradients in the window, as in InHAD; a third uses ordinary memory while the reader holds both.
TEST(WindowChannel, WhatIsReadIsFreeAgainAndWhatIsNotIsNot) {
  WithWindows(2, [](Transport& transport, TransportChannel& channel, BlobPools& pools) {
    if (transport.rank() == 0) {
      std::vector<Envelope> kept;
      for (int i = 0; i < 2; ++i) kept.push_back(NextEnvelope(channel));
      transport.Barrier();  // both are being read
      transport.Barrier();  // the other rank has looked
      kept.erase(kept.begin());
      transport.Barrier();  // one has been returned
      EXPECT_EQ(*kept[0].slice->At(7), 7);
      transport.Barrier();
      EXPECT_EQ(*kept[0].slice->At(7), 7);
      return;
    }
    std::vector<const float*> memory;
    for (int i = 0; i < 2; ++i) {
      const VectorSlice slice{Counting(pools.NewToSend(kElements)), 0, {0, kElements}};
      memory.push_back(slice.blob.f32());
      channel.Send(0, {.slice = slice});
    }
    transport.Barrier();
    Blob third = pools.NewToSend(kElements);
    EXPECT_NE(third.f32(), memory[0]);
    EXPECT_NE(third.f32(), memory[1]);
    transport.Barrier();
    transport.Barrier();
    Blob fourth = pools.NewToSend(kElements);
    EXPECT_EQ(fourth.f32(), memory[0]) << "given back";
    std::fill_n(fourth.MutableF32(), kElements, -1.0f);
    std::fill_n(third.MutableF32(), kElements, -1.0f);
    transport.Barrier();
  });
}

// Returns which ranks of two workers and a server have a window.
std::vector<bool> WindowsOf(const std::string& name, const std::vector<int>& nodes,
                            bool window = true) {
  const auto strategy = MakeStrategy(name, "");
  Placement placement = strategy->Place(2);
  if (placement.nodes() > 0) placement.node_of = {0, 0};
  std::vector<char> has(3);
  LocalWorld::Run(3, [&](Transport& transport) {
    RankInputs inputs(*strategy, placement, 0);
    inputs.spec.rank_nodes = nodes;
    inputs.spec.window = window;
    const WallClock clock;
    BlobPools pools;
    const RankDependencies dependencies = DependenciesOver(transport, inputs.spec, clock, pools);
    has[transport.rank()] = dependencies.window != nullptr;
  });
  return {has.begin(), has.end()};
}

TEST(Window, IsWhereVectorsAreSentInsideANode) {
  using Has = std::vector<bool>;
  EXPECT_EQ(WindowsOf("ps_asp", {0, 0, 0}), (Has{true, true, true}));
  EXPECT_EQ(WindowsOf("ps_asp", {0, 1, 0}), (Has{true, false, true}));
  EXPECT_EQ(WindowsOf("ps_asp", {0, 0, 1}), (Has{false, false, false})) << "only workers share one";
  EXPECT_EQ(WindowsOf("inhad", {0, 0, 1}), (Has{true, true, false})) << "the node's actor is there";
  EXPECT_EQ(WindowsOf("inhad", {0, 0, 1}, false), (Has{false, false, false}));
  EXPECT_EQ(WindowsOf("inhad", {}), (Has{false, false, false})) << "nodes are not known";
}

}  // namespace
}  // namespace dtrain
