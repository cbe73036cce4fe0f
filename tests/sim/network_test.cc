#include "framework/sim/network.h"

#include <gtest/gtest.h>

#include "tests/sim/sim_network.h"

namespace dtrain {
namespace {

using Queue = NetworkModel::Queue;
using Instants = std::vector<Nanos>;

class EachQueue : public ::testing::TestWithParam<Queue> {
 protected:
  NetworkModel Model() const { return RoundNumbers(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Network, EachQueue, ::testing::Values(Queue::kFifo, Queue::kFair));

TEST_P(EachQueue, AloneAMessageTakesLatencyAndBytes) {
  NotingNetwork net(Model(), 2);
  net.Send(0, 1, 1000);
  net.Run();
  EXPECT_EQ(net.messages[0].sent, 1000);
  EXPECT_EQ(net.messages[0].delivered, 1100);
}

TEST_P(EachQueue, AnEmptyMessageTakesTheLatency) {
  NotingNetwork net(Model(), 2);
  net.Send(0, 1, 0);
  net.Run();
  EXPECT_EQ(net.messages[0].delivered, 100);
}

TEST_P(EachQueue, MessagesOfAPairPassOneAfterTheOther) {
  NotingNetwork net(Model(), 2);
  for (int i = 0; i < 3; ++i) net.Send(0, 1, 1000);
  net.Run();
  EXPECT_EQ(net.delivered(), (Instants{1100, 2100, 3100}));
}

TEST_P(EachQueue, BothDirectionsAreFree) {
  NotingNetwork net(Model(), 2);
  net.Send(0, 1, 1000);
  net.Send(1, 0, 1000);
  net.Run();
  EXPECT_EQ(net.delivered(), (Instants{1100, 1100}));
}

TEST_P(EachQueue, PairsThatShareNoNicDoNotDisturbEachOther) {
  NotingNetwork net(Model(), 4);
  net.Send(0, 1, 1000);
  net.Send(2, 3, 1000);
  net.Run();
  EXPECT_EQ(net.delivered(), (Instants{1100, 1100}));
}

TEST_P(EachQueue, IncastAndItsAnswersTakeAsLongAsAllBytes) {
  NotingNetwork in(Model(), 9);
  for (Rank worker = 1; worker < 9; ++worker) in.Send(worker, 0, 1000);
  in.Run();
  EXPECT_EQ(in.events.now(), 8100);
  NotingNetwork out(Model(), 9);
  for (Rank worker = 1; worker < 9; ++worker) out.Send(0, worker, 1000);
  out.Run();
  EXPECT_EQ(out.events.now(), 8100);
}

TEST_P(EachQueue, ALateMessageFindsTheNicFree) {
  NotingNetwork net(Model(), 3);
  net.Send(0, 2, 1000);
  net.Send(1, 2, 500, 5000);
  net.Run();
  EXPECT_EQ(net.delivered(), (Instants{1100, 5600}));
}

TEST_P(EachQueue, FractionsOfANanosecondDoNotAddUp) {
  NetworkModel model = Model();
  model.between_nodes.bandwidth_gbit_s = 24;  // 100 bytes take 33 1/3 ns
  NotingNetwork net(model, 2);
  for (int i = 0; i < 300; ++i) net.Send(0, 1, 100);
  net.Run();
  EXPECT_EQ(net.messages[0].delivered, 134);
  EXPECT_NEAR(net.messages[1].delivered, 167, 1);
  EXPECT_NEAR(net.messages[299].delivered, 10100, 1);
}

TEST(Network, FifoServesInOrderOfArrival) {
  NotingNetwork net(RoundNumbers(Queue::kFifo), 4);
  net.Send(0, 3, 3000);
  net.Send(1, 3, 1000, 10);
  net.Send(2, 3, 1000, 5);
  net.Run();
  EXPECT_EQ(net.delivered(), (Instants{3100, 5100, 4100}));
}

TEST(Network, FairLetsShortMessagesPast) {
  // The messages share the rate in three parts until the short ones end at 3000 (+100); 1000 bytes of the long one have
  // passed by then, and it has the NIC to itself.
  NotingNetwork net(RoundNumbers(Queue::kFair), 4);
  net.Send(0, 3, 3000);
  net.Send(1, 3, 1000);
  net.Send(2, 3, 1000);
  net.Run();
  EXPECT_EQ(net.delivered(), (Instants{5100, 3100, 3100}));
}

TEST(Network, FairSharesFromTheMomentOfArrival) {
  // The first 1000 bytes of message one pass alone, then 1000 bytes of each at half the rate, then the remainder of
  // message one.
  NotingNetwork net(RoundNumbers(Queue::kFair), 3);
  net.Send(0, 2, 3000);
  net.Send(1, 2, 1000, 1000);
  net.Run();
  EXPECT_EQ(net.delivered(), (Instants{4100, 3100}));
}

TEST(Network, FairSharesBetweenPairsNotMessages) {
  NotingNetwork net(RoundNumbers(Queue::kFair), 3);
  for (int i = 0; i < 3; ++i) net.Send(0, 2, 1000);
  net.Send(1, 2, 1000);
  net.Run();
  EXPECT_EQ(net.delivered(), (Instants{2100, 3100, 4100, 2100}));
}

TEST(Network, TwoReceiversShareTheSendersNic) {
  NotingNetwork fifo(RoundNumbers(Queue::kFifo), 3);
  fifo.Send(0, 1, 1000);
  fifo.Send(0, 2, 1000);
  fifo.Run();
  EXPECT_EQ(fifo.delivered(), (Instants{1100, 2100}));
  EXPECT_EQ(fifo.messages[0].sent, 1000);
  NotingNetwork fair(RoundNumbers(Queue::kFair), 3);
  fair.Send(0, 1, 1000);
  fair.Send(0, 2, 1000);
  fair.Run();
  EXPECT_EQ(fair.delivered(), (Instants{2100, 2100}));
}

TEST(Network, TheSlowerNicDecidesWhereAMessageSharesBoth) {
  // Rank 0's NIC is shared by three messages, rank 3's by two: 0 -> 3 is limited by the sender.
  NotingNetwork net(RoundNumbers(Queue::kFair), 5);
  for (Rank to = 1; to <= 3; ++to) net.Send(0, to, 1000);
  net.Send(4, 3, 1000);
  net.Run();
  EXPECT_EQ(net.delivered(), (Instants{3100, 3100, 3100, 2100}));
}

TEST(Network, ABucketPassesAtLineRateThenAtBandwidth) {
  NetworkModel model = RoundNumbers();
  model.between_nodes.bucket_bytes = 1000;
  model.between_nodes.line_gbit_s = 16;
  NotingNetwork net(model, 2);
  net.Send(0, 1, 2000);         // the bucket is empty at 1000
  net.Send(0, 1, 1000);         // so it passes at `bandwidth`, until 2000
  net.Send(0, 1, 1000, 2500);   // 500 tokens: 2 t = 500 + t, so 1000 bytes in 500 ns
  net.Send(0, 1, 2000, 10000);  // full again
  net.Run();
  EXPECT_EQ(net.delivered(), (Instants{1100, 2100, 3100, 11100}));
}

TEST(Network, AnUnlimitedBucketPassesAtOnce) {
  NetworkModel model = RoundNumbers();
  model.between_nodes.bucket_bytes = 1000;
  NotingNetwork net(model, 2);
  net.Send(0, 1, 1000);
  net.Send(0, 1, 500, 200);  // 200 tokens have accumulated
  net.Run();
  EXPECT_EQ(net.delivered(), (Instants{100, 600}));
}

TEST(Network, InsideANodePairsDoNotTouchTheNic) {
  NetworkModel model = RoundNumbers();
  model.per_node = 2;
  NotingNetwork net(model, 4);
  EXPECT_EQ(net.network.nodes(), 2);
  net.Send(0, 1, 1000);
  net.Send(0, 1, 1000);
  net.Send(1, 0, 1000);
  net.Send(2, 3, 1000);
  net.Send(0, 2, 1000);
  net.Run();
  EXPECT_EQ(net.delivered(), (Instants{110, 210, 110, 110, 1100}));
  EXPECT_EQ(net.messages[1].sent, 200);
  EXPECT_EQ(net.network.outgoing_busy(0), 1000);
  EXPECT_EQ(net.network.incoming_busy(0), 0);
  EXPECT_EQ(net.network.incoming_busy(1), 1000);
}

TEST(Network, RanksOfANodeShareItsNic) {
  NetworkModel model = RoundNumbers();
  model.per_node = 2;
  NotingNetwork net(model, 4);
  net.Send(0, 2, 1000);
  net.Send(1, 3, 1000);
  net.Run();
  EXPECT_EQ(net.delivered(), (Instants{2100, 2100}));
}

TEST(Network, AMapMayPlaceTheRanks) {
  NotingNetwork net(RoundNumbers(), 3, {0, 1, 0});
  EXPECT_EQ(net.network.nodes(), 2);
  EXPECT_EQ(net.network.NodeOf(2), 0);
  net.Send(0, 2, 1000);
  net.Send(0, 1, 1000);
  net.Run();
  EXPECT_EQ(net.delivered(), (Instants{110, 1100}));
}

TEST(Network, AMessageToOneselfArrivesAtOnceAndIsNoTraffic) {
  NotingNetwork net(RoundNumbers(), 2);
  net.Send(1, 1, 1000, 30);
  net.Run();
  EXPECT_EQ(net.messages[0].sent, 30);
  EXPECT_EQ(net.messages[0].delivered, 30);
  EXPECT_EQ(net.network.traffic(1).messages_sent, 0);
}

TEST(Network, OverheadOccupiesTheProcessorsOfBothEnds) {
  NetworkModel model = RoundNumbers();
  model.message_overhead_us = 0.007;
  NotingNetwork net(model, 3);
  net.Send(0, 1, 1000);  // leaves at 7
  net.Send(0, 1, 0);     // the processor can send it at 14
  net.Send(2, 1, 0);     // arrives at 107, before the others
  net.Run();
  EXPECT_EQ(net.delivered(), (Instants{1114, 1121, 114}));
}

TEST(Network, CountsPerRank) {
  NotingNetwork net(RoundNumbers(), 3);
  net.Send(0, 1, 1000);
  net.Send(0, 2, 500);
  net.Send(1, 0, 20);
  net.events.RunNext();
  EXPECT_EQ(net.network.in_flight(), 1);
  net.Run();
  EXPECT_EQ(net.network.in_flight(), 0);
  const Network::Traffic& rank0 = net.network.traffic(0);
  EXPECT_EQ(rank0.bytes_sent, 1500);
  EXPECT_EQ(rank0.messages_sent, 2);
  EXPECT_EQ(rank0.bytes_received, 20);
  EXPECT_EQ(rank0.messages_received, 1);
  EXPECT_EQ(net.network.traffic(2).bytes_received, 500);
}

TEST(Network, AWideIncastCostsAFewEventsAMessage) {
  for (const Queue queue : {Queue::kFifo, Queue::kFair}) {
    NotingNetwork net(RoundNumbers(queue), 2049);
    for (Rank worker = 1; worker <= 2048; ++worker) net.Send(worker, 0, 100000 + worker, worker);
    net.Run();
    EXPECT_EQ(net.order.size(), 2048u);
    EXPECT_LE(net.events.executed(), 6 * 2048);
    EXPECT_EQ(net.events.now(), 101 + 2048 * 100000 + 2048 * 2049 / 2);
  }
}

TEST(Network, MessagesThatOvertakeCostAFewEventsEach) {
  // Each new message ends before all others, so that the time of the next end moves forward each time.
  NotingNetwork net(RoundNumbers(), 1001);
  for (Rank worker = 1; worker <= 1000; ++worker) {
    net.Send(worker, 0, 1'000'000'000 / (worker * worker), worker);
  }
  net.Run();
  EXPECT_EQ(net.order.front(), 999);
  EXPECT_EQ(net.order.back(), 0);
  EXPECT_LE(net.events.executed(), 7 * 1000);
}

TEST(NetworkDeathTest, MisuseIsNamed) {
  EventQueue events;
  Network network(events, RoundNumbers(), 2);
  EXPECT_DEATH(network.Send(0, 2, 1, [] {}), "message from rank 0 to rank 2 of 2");
  EXPECT_DEATH(network.Send(0, 1, -1, [] {}), "message of -1 bytes");
  EXPECT_DEATH(Network(events, RoundNumbers(), 3, {0, 1}), "3 ranks, but nodes of 2");
}

}  // namespace
}  // namespace dtrain
