#include "framework/bench/network/link_shares.h"

#include <gtest/gtest.h>

#include <functional>

#include "framework/comm/local/local_world.h"
#include "framework/core/random.h"
#include "framework/sim/network.h"

namespace dtrain {
namespace {

constexpr int kSenders = 7;
constexpr int kMessages = 40;
constexpr int64_t kBytes = 4 << 20;

// Does what TimeIncast does, over a simulated network with a known deviation.
class SimulatedIncast {
 public:
  explicit SimulatedIncast(double share_deviation) : network_(events_, Model(share_deviation), 8) {}

  std::vector<Passage> Run() {
    for (Rank sender = 1; sender <= kSenders; ++sender) Begin(sender, kMessages);
    while (events_.RunNext()) {
    }
    return passages_;
  }

 private:
  static NetworkModel Model(double share_deviation) {
    NetworkModel model;
    model.between_nodes.bandwidth_gbit_s = 0.1;
    model.share_deviation = share_deviation;
    return model;
  }

  void Begin(Rank sender, int left) {
    const Nanos begin = events_.now();
    network_.Send(sender, 0, kBytes, [this, sender, left, begin] {
      passages_.push_back({ToSeconds(begin), ToSeconds(events_.now())});
      if (left == 1) return;
      const Random random(1, Purpose::kSelfTest, static_cast<uint64_t>(sender),
                          static_cast<uint64_t>(left));
      const double pause = static_cast<double>(events_.now() - begin) * random.Uniform(0);
      events_.After(static_cast<Nanos>(pause), [this, sender, left] { Begin(sender, left - 1); });
    });
  }

  EventQueue events_;
  Network network_;
  std::vector<Passage> passages_;
};

TEST(LinkShares, FindTheDeviationOfASimulatedNetwork) {
  for (const double deviation : {0.2, 0.35, 0.5}) {
    EXPECT_NEAR(ShareDeviationOf(SimulatedIncast(deviation).Run()), deviation, 0.1 * deviation);
  }
}

TEST(LinkShares, EqualSharesHaveNoDeviation) {
  EXPECT_LT(ShareDeviationOf(SimulatedIncast(0).Run()), 0.01);
}

TEST(LinkShares, MessagesOneAfterTheOtherShareNothing) {
  const Passage passages[] = {{0, 1}, {1, 2}, {2.5, 4}};
  EXPECT_EQ(ShareDeviationOf(passages), 0);
}

TEST(LinkShares, EveryMessageOfAnIncastIsTimed) {
  LocalWorld::Run(3, [](Transport& transport) {
    const std::vector<Passage> passages = TimeIncast(transport, 1000, 4);
    ASSERT_EQ(passages.size(), transport.rank() == 0 ? 8u : 0u);
    for (const Passage& passage : passages) EXPECT_LT(passage.begin, passage.end);
  });
}

}  // namespace
}  // namespace dtrain
