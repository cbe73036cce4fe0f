// Tests one reduction at a time, and several: which messages leave before the previous reduction is done.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/comm/collective.h"
#include "framework/comm/local/local_world.h"
#include "tests/support/counting_transport.h"

namespace dtrain {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::Not;

// Records the chunk streams of sent messages.
class NotingTransport : public ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;

  Request Send(Rank to, Tag tag, std::span<const std::byte> data) override {
    chunks.push_back(static_cast<int>(tag) - static_cast<int>(Tag::kCollectiveStream));
    return ForwardingTransport::Send(to, tag, data);
  }

  std::vector<int> chunks;  // by first use, over all reductions
};

// More than the two ranks of `ordered` send in one round.
constexpr int kChunkBytes = 128 << 10;
constexpr size_t kChunkFloats = kChunkBytes / sizeof(float);

// Two ranks in one thread, so that the test chooses their order of progress.
class TwoRanks {
 public:
  TwoRanks(const std::string& name, bool overlap) : world_(2) {
    for (Rank rank = 0; rank < 2; ++rank) {
      transports_.push_back(world_.Connect(rank));
      noted.push_back(std::make_unique<NotingTransport>(*transports_.back()));
      collectives.push_back(
          MakeCollective(name, *noted.back(), {.chunk_bytes = kChunkBytes, .overlap = overlap}));
    }
  }

  void Start(Rank rank, std::vector<float>& data) { collectives[rank]->Start(data); }
  void Progress() {
    for (const auto& collective : collectives) collective->Progress();
  }

 private:
  LocalWorld world_;
  std::vector<std::unique_ptr<Transport>> transports_;

 public:
  std::vector<std::unique_ptr<NotingTransport>> noted;
  std::vector<std::unique_ptr<Collective>> collectives;
};

class ChannelTest : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Collectives, ChannelTest,
                         ::testing::Values("ordered", "ring", "halving_doubling", "double_trees"),
                         [](const auto& info) { return info.param; });

TEST_P(ChannelTest, CarriesOneReductionAtATime) {
  constexpr int kChunks = 6;
  std::vector<float> first[2], none, second[2];
  TwoRanks ranks(GetParam(), false);
  for (Rank rank = 0; rank < 2; ++rank) {
    first[rank].assign(kChunkFloats * kChunks, 1.0f);
    second[rank].assign(kChunkFloats * 2, 1.0f);
    ranks.Start(rank, first[rank]);
    ranks.Start(rank, none);  // keeps the next reduction waiting
    ranks.Start(rank, second[rank]);
  }
  while (!ranks.collectives[0]->Idle() || !ranks.collectives[1]->Idle()) {
    for (Rank rank = 0; rank < 2; ++rank) {
      if (ranks.collectives[rank]->Done(0)) continue;
      EXPECT_THAT(ranks.noted[rank]->chunks, Each(Le(kChunks - 1)));
    }
    ranks.Progress();
  }
  EXPECT_THAT(ranks.noted[0]->chunks, Not(Each(Le(kChunks - 1))));
  EXPECT_THAT(first[0], Each(2.0f));
  EXPECT_THAT(second[1], Each(2.0f));
}

TEST_P(ChannelTest, CarriesChunksOfTheNextReductionWhereTheyOverlap) {
  for (const bool overlap : {false, true}) {
    std::vector<float> first(kChunkFloats, 1.0f), second(kChunkFloats, 1.0f);
    TwoRanks ranks(GetParam(), overlap);
    ranks.Start(0, first);
    ranks.Start(0, second);
    std::vector<int> of_second = ranks.noted[0]->chunks;
    std::erase(of_second, 0);
    EXPECT_THAT(of_second,
                overlap ? Not(IsEmpty()) : ::testing::Matcher<std::vector<int>>(IsEmpty()));
  }
}

}  // namespace
}  // namespace dtrain
