// Records a run with real threads and replays it from its event logs.
#include "framework/sim/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <mutex>

#include "framework/comm/local/local_world.h"
#include "framework/core/error.h"
#include "framework/core/random.h"
#include "framework/exchange/threaded/threaded_exchange.h"
#include "tests/support/source_at_once.h"
#include "tests/support/strategy_text.h"

namespace dtrain {
namespace {

constexpr int64_t kReplaySize = 3000;
constexpr int kWorkers = 3;
const ArenaLayout kReplayLayout{{{"w", {kReplaySize}, {0, kReplaySize}, true}}};

// A function of (weights, worker, step) that depends on every bit of the weights.
class Gradients : public SourceAtOnce {
 public:
  StepReport Compute(int worker, int64_t step, const Blob& weights, float* gradients) override {
    const Random random(5, Purpose::kSelfTest, static_cast<uint64_t>(worker),
                        static_cast<uint64_t>(step));
    for (int64_t i = 0; i < kReplaySize; ++i) {
      const float w = weights.f32()[i];
      gradients[i] = 0.3f * w + random.Uniform(static_cast<uint64_t>(i), -1, 1) * (1 - 0.1f * w);
    }
    return {.samples = 8, .loss_sum = 1};
  }
};

std::vector<Event> ReadLog(const std::string& bytes) { return EventLog::Read(bytes, "log"); }

// The settings of a run besides its strategy's keys.
struct Shape {
  std::string compress = "";
  std::vector<int> node_of = {};    // of the workers; gives their number too
  int64_t epoch_samples = 1 << 30;  // an epoch ends at a boundary
};

struct Recorded {
  Recorded(const std::string& name, const std::string& keys, const Shape& shape = {}) {
    strategy = MakeStrategy(name, keys);
    ExchangeSpec& spec = setup.exchange;
    spec.solver = MakeSolver("{name: sgd, lr: 0.05, momentum: 0.9}");
    spec.layout = &kReplayLayout;
    spec.strategy = strategy.get();
    spec.layer_gradients = {{{0, kReplaySize}}};
    const int workers = shape.node_of.empty() ? kWorkers : static_cast<int>(shape.node_of.size());
    spec.actors = {strategy->Place(workers), kReplaySize, {{0, kReplaySize}}};
    if (spec.placement().nodes() > 0) spec.actors.placement.node_of = shape.node_of;
    spec.actors.compress = MakeCompress(shape.compress);
    spec.record = true;
    const int64_t batch = 8 * workers;
    spec.rule = {.epoch_samples = shape.epoch_samples, .batch = batch, .last_samples = batch * 30};
    spec.rule.strategy_every_epochs = 1;
    setup.source = &gradients;
    initial.assign(kReplaySize, 0.5f);
    spec.start.weights = initial;
    Run();
  }

  void Run() {
    std::mutex mutex;
    const int ranks = setup.exchange.placement().ranks();
    logs.resize(static_cast<size_t>(ranks));
    LocalWorld::Run(ranks, [&](Transport& transport) {
      ThreadedExchange exchange(transport, setup.exchange, 0);
      const ProtocolReport report = RunRank(exchange, transport.rank());
      exchange.Collect(false);
      const Blob blob = exchange.weights();
      const std::lock_guard lock(mutex);
      protocol.Add(report);
      logs[transport.rank()] = ReadLog(exchange.record().bytes());
      weights.assign(blob.f32(), blob.f32() + blob.size());
    });
  }

  ProtocolReport RunRank(Exchange& exchange, int rank) const {
    Gradients source;
    for (int64_t step = 0;;) {
      Turn turn = exchange.Begin(8);
      if (turn.boundary) {
        if (turn.state.samples_applied >= setup.exchange.rule.last_samples) break;
        exchange.Leave();
        continue;
      }
      StepReport report = source.Compute(rank, step++, turn.weights, exchange.gradients().data);
      report.compute =
          1'000'000 * (1 + rank % 2);  // compute is as fast as transfers to other nodes
      turn.weights = Blob();
      exchange.Ready({0, kReplaySize});
      exchange.End(report);
    }
    return exchange.stats().protocol;
  }

  std::unique_ptr<Strategy> strategy;
  Gradients gradients;
  std::vector<float> initial;
  SimulationSetup setup;
  std::vector<std::vector<Event>> logs;
  std::vector<float> weights;
  ProtocolReport protocol;  // of all actors
};

std::vector<uint32_t> BitsOf(const std::vector<float>& values) {
  std::vector<uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<uint32_t>(value));
  return bits;
}

class ReplayTest : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(ReplayTest, GivesTheSameBits) {
  for (int run = 0; run < 5; ++run) {
    const Recorded recorded(GetParam().first, GetParam().second);
    EXPECT_EQ(BitsOf(Replay(recorded.setup, recorded.logs)), BitsOf(recorded.weights));
  }
}

// Compresses to about as many bytes as dense messages (some shards are sent dense), and selects everything.
TEST(Replay, OfACompressedRunGivesTheSameBits) {
  for (const char* density : {"0.01", "0.5", "1"}) {
    const std::string topk = std::string("{name: topk, density: ") + density + "}";
    for (const char* name : {"ps_asp", "ps_ssp"}) {
      const Recorded recorded(name, "servers: 2", {.compress = topk});
      EXPECT_EQ(BitsOf(Replay(recorded.setup, recorded.logs)), BitsOf(recorded.weights))
          << name << ", density " << density;
    }
  }
}

// Two nodes of two workers: aggregators, the Scheduler, two servers.
TEST(Replay, OfInhadGivesTheSameBits) {
  for (const char* keys : {"servers: 2", "servers: 2, n: 4, pipelined: true, placement: colocated",
                           "servers: 2, n: 2, late: drop, s_max: 1, broadcast: pulled",
                           "n: 2, lockstep: true, modulate: mean, in_interval: 0.1"}) {
    const Recorded recorded("inhad", keys, {.node_of = {0, 0, 1, 1}});
    EXPECT_GT(recorded.protocol.Total("rounds"), 0) << keys;
    EXPECT_EQ(BitsOf(Replay(recorded.setup, recorded.logs)), BitsOf(recorded.weights)) << keys;
  }
}

// Workers of two speeds are in one group, so that the coordinator moves some of them at a boundary; which runs get that
// far depends on the threads.
TEST(Replay, OfGsspGivesTheSameBits) {
  const std::vector<int> workers = {0, 0, 0, 0};  // one entry a worker; there are no nodes
  int64_t regroups = 0;
  for (const char* keys :
       {"servers: 2, groups: 2", "servers: 2, groups: 2, placement: colocated",
        "servers: 3, staleness: 1", "servers: 2, exchange: averaging, inside: bsp"}) {
    for (const char* compress : {"", "{name: gdtopk}"}) {
      const Recorded recorded(
          "gssp", keys, {.compress = compress, .node_of = workers, .epoch_samples = 8 * 4 * 8});
      regroups += recorded.protocol.Total("regroups");
      EXPECT_EQ(BitsOf(Replay(recorded.setup, recorded.logs)), BitsOf(recorded.weights))
          << keys << " " << compress;
    }
  }
  EXPECT_GT(regroups, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Strategies, ReplayTest,
    ::testing::Values(std::pair{"ps_asp", "servers: 1"}, std::pair{"ps_asp", "servers: 2"},
                      std::pair{"ps_asp", "servers: 2, prefetch: true"},
                      std::pair{"ps_ssp", "servers: 2, staleness: 1"},
                      std::pair{"ps_dssp", "servers: 2, staleness: 1, staleness_max: 4"},
                      std::pair{"ps_ssp", "servers: 2, placement: colocated, damping: inverse"},
                      std::pair{"easgd", "servers: 2, period: 3"},
                      std::pair{"easgd", "period: 1, placement: colocated"}));

// Shows that the comparison of the tests above can fail.
TEST(Replay, AnotherOrderGivesOtherBits) {
  Recorded recorded("ps_asp", "servers: 1");
  std::vector<Event>& server = recorded.logs[kWorkers];
  bool other = false;
  // Some neighbouring events may swap without effect, such as two requests for the same weights.
  for (size_t i = 0; i + 1 < server.size() && !other; ++i) {
    if (server[i].value == server[i + 1].value) continue;
    std::swap(server[i], server[i + 1]);
    other = Replay(recorded.setup, recorded.logs) != recorded.weights;
    std::swap(server[i], server[i + 1]);
  }
  EXPECT_TRUE(other);
}

TEST(Replay, ARecordThatDoesNotFitSaysWhereItStopped) {
  Recorded recorded("ps_asp", "servers: 1");
  // The server expects a worker that never does anything in the replay.  Which workers push before the run ends depends
  // on the threads.
  const std::vector<Event>& server = recorded.logs[kWorkers];
  const auto heard = std::find_if(server.begin(), server.end(), [](const Event& event) {
    return event.kind == EventKind::kMessage;
  });
  ASSERT_NE(heard, server.end());
  std::vector<Event>& silent = recorded.logs[heard->value];
  silent.clear();
  try {
    Replay(recorded.setup, recorded.logs);
    FAIL() << "no error";
  } catch (const CheckpointError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("the record does not fit its run: actor"));
  }
  silent.push_back({EventKind::kBegin, 77, 0});
  EXPECT_THROW(Replay(recorded.setup, recorded.logs), CheckpointError);
}

TEST(EventLog, ReadsWhatItWrote) {
  EventLog log;
  std::vector<Event> events;
  for (int i = 0; i < 300; ++i) {
    events.push_back({EventKind::kMessage, i * 37, i});
    events.push_back({EventKind::kBegin, i, 0});
    events.push_back({EventKind::kQuiet, i, int64_t{-1} << (i % 60), i % 2 == 1});
    events.push_back({EventKind::kEnd, i, int64_t{1} << (i % 60)});
  }
  for (const Event& event : events) {
    log.Add(event);
  }
  EXPECT_EQ(ReadLog(log.bytes()), events);
}

TEST(EventLog, ACutOrForeignLogIsRefused) {
  EventLog log;
  log.Add({EventKind::kMessage, 300, 5});
  const std::string cut = log.bytes().substr(0, log.bytes().size() - 1);
  EXPECT_THROW(ReadLog(cut), CheckpointError);
  EXPECT_THROW(ReadLog("\x7f\x01"), CheckpointError);
  EXPECT_THROW(ReadLog("\xff\xff\xff\xff\xff\xff"), CheckpointError);
}

}  // namespace
}  // namespace dtrain
