// Tests random traffic over many seeds: against the fluid reference, and for invariants.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "framework/core/random.h"
#include "tests/sim/fluid_network.h"
#include "tests/sim/sim_network.h"
#include "tests/support/seeds.h"

namespace dtrain {
namespace {

using Queue = NetworkModel::Queue;

constexpr int kMessages = 40;

// Start times differ modulo 1000 and sizes do not: under FIFO no two messages arrive at the same time, which would
// leave their order open.
void SendAtRandom(NotingNetwork& net, uint64_t seed) {
  const Random random(seed, Purpose::kSelfTest);
  const int ranks = 2 + static_cast<int>(random.Below(0, 6));
  for (int i = 0; i < kMessages; ++i) {
    const auto draw = [&](int index, uint64_t bound) {
      return random.Below(10 * i + index, bound);
    };
    const auto from = static_cast<Rank>(draw(1, ranks));
    const auto to = static_cast<Rank>((from + 1 + draw(2, ranks - 1)) % ranks);
    const auto bytes = static_cast<int64_t>(1000 * (1 + draw(3, draw(4, 4) == 0 ? 50 : 5)));
    net.Send(from, to, bytes, static_cast<Nanos>(1000 * draw(5, 60) + i));
  }
}

// A message that is late by a nanosecond holds up another one by as many as its share is larger, so the tolerance of one
// message grows with the spread of shares.  That of the mean does not.
void ExpectAsFluid(const NetworkModel& model, double tolerance) {
  double sum = 0, count = 0;
  for (const int64_t seed : SeedRange(Seeds())) {
    NotingNetwork net(model, 8);
    SendAtRandom(net, seed);
    net.Run();
    FluidNetwork fluid(model, net.messages);
    const double most = tolerance * fluid.SpreadOfShares();
    const std::vector<double> expected = fluid.Run();
    for (int i = 0; i < kMessages; ++i) {
      const auto delivered = static_cast<double>(net.messages[i].delivered);
      ASSERT_NEAR(delivered, expected[i], most) << "message " << i << ", seed " << seed;
      sum += std::abs(delivered - expected[i]);
      ++count;
    }
  }
  EXPECT_LE(sum / count, tolerance / 4);
}

TEST(NetworkSeeds, FifoIsAsTheFluid) { ExpectAsFluid(RoundNumbers(Queue::kFifo), 0.01); }

// Both ends of a message are rounded to nanoseconds.
TEST(NetworkSeeds, FairIsAsTheFluid) { ExpectAsFluid(RoundNumbers(Queue::kFair), 4); }

TEST(NetworkSeeds, FairWithBucketsIsAsTheFluid) {
  NetworkModel model = RoundNumbers(Queue::kFair);
  model.between_nodes.bucket_bytes = 7000;
  model.between_nodes.line_gbit_s = 24;
  ExpectAsFluid(model, 8);
}

TEST(NetworkSeeds, UnevenSharesAreAsTheFluid) {
  NetworkModel model = RoundNumbers(Queue::kFair);
  model.share_deviation = 0.5;
  ExpectAsFluid(model, 4);
}

class EachModel : public ::testing::TestWithParam<NetworkModel> {};

NetworkModel WithEverything(Queue queue) {
  NetworkModel model = RoundNumbers(queue);
  model.between_nodes.bucket_bytes = 5000;
  model.per_node = 2;
  model.message_overhead_us = 0.3;
  model.share_deviation = 0.4;
  return model;
}
INSTANTIATE_TEST_SUITE_P(NetworkSeeds, EachModel,
                         ::testing::Values(RoundNumbers(Queue::kFifo), RoundNumbers(Queue::kFair),
                                           WithEverything(Queue::kFifo),
                                           WithEverything(Queue::kFair)));

TEST_P(EachModel, EverythingArrivesOnceAndInOrderOfItsPair) {
  for (const int64_t seed : SeedRange(Seeds())) {
    NotingNetwork net(GetParam(), 8);
    SendAtRandom(net, seed);
    net.Run();
    ASSERT_EQ(net.order.size(), net.messages.size()) << "seed " << seed;
    EXPECT_EQ(net.network.in_flight(), 0);
    std::map<std::pair<Rank, Rank>, Nanos> last_start;
    for (const int index : net.order) {
      const NotedMessage& message = net.messages[index];
      Nanos& start = last_start[{message.from, message.to}];
      EXPECT_LE(start, message.start) << "message " << index << ", seed " << seed;
      start = message.start;
      EXPECT_LE(message.start, message.sent);
      EXPECT_LE(message.sent, message.delivered);
    }
    int64_t sent = 0;
    int64_t received = 0;
    for (Rank rank = 0; rank < 8; ++rank) {
      sent += net.network.traffic(rank).bytes_sent;
      received += net.network.traffic(rank).bytes_received;
    }
    EXPECT_EQ(sent, received);
  }
}

TEST_P(EachModel, OneSeedOneHistory) {
  for (const int64_t seed : SeedRange(20)) {
    NotingNetwork first(GetParam(), 8);
    NotingNetwork second(GetParam(), 8);
    SendAtRandom(first, seed);
    SendAtRandom(second, seed);
    first.Run();
    second.Run();
    EXPECT_EQ(first.delivered(), second.delivered());
    EXPECT_EQ(first.order, second.order);
    EXPECT_EQ(first.events.executed(), second.events.executed());
  }
}

// A busy NIC sends at its full rate: it is busy for the time of its bytes and no longer.
TEST(NetworkSeeds, ABusyNicWorksAtItsRate) {
  for (const Queue queue : {Queue::kFifo, Queue::kFair}) {
    for (const int64_t seed : SeedRange(Seeds())) {
      NotingNetwork net(RoundNumbers(queue), 8);
      SendAtRandom(net, seed);
      net.Run();
      for (Rank rank = 0; rank < 8; ++rank) {
        const Network::Traffic& traffic = net.network.traffic(rank);
        EXPECT_EQ(net.network.outgoing_busy(rank), traffic.bytes_sent) << "seed " << seed;
        EXPECT_EQ(net.network.incoming_busy(rank), traffic.bytes_received) << "seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace dtrain
