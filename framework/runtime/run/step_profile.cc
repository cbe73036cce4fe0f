#include "framework/runtime/run/step_profile.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "framework/comm/collective.h"
#include "framework/comm/gather.h"
#include "framework/comm/reduce_time.h"
#include "framework/comm/sparse_collective.h"
#include "framework/core/bytes.h"
#include "framework/core/random.h"
#include "framework/core/statistics.h"
#include "framework/core/time.h"
#include "framework/exchange/reducer.h"
#include "framework/runtime/run/training_step.h"

namespace dtrain {
namespace {

constexpr int kSteps = 20;
constexpr int kWarmUp = 5;  // of them: caches, frequencies, first touches of memory

// Notes when each piece is there.
class ReadyTimes : public GradientSink {
 public:
  explicit ReadyTimes(const GradientPieces& pieces)
      : pieces_(pieces), seconds_(pieces.ranges.size()) {}

  void Begin() {
    start_ = WallNow();
    next_ = 0;
  }
  void Ready(Range range, const ReadyEvent& written) override {
    written.Wait();
    const double now = ToSeconds(WallNow() - start_);
    while (next_ < pieces_.ranges.size() && pieces_.ranges[next_].end <= range.end) {
      seconds_[next_++].push_back(now);
    }
  }
  std::vector<double> Medians() const {
    std::vector<double> medians;
    for (const std::vector<double>& seconds : seconds_) {
      medians.push_back(Median({seconds.begin() + kWarmUp, seconds.end()}));
    }
    return medians;
  }

 private:
  const GradientPieces& pieces_;
  std::vector<std::vector<double>> seconds_;  // by piece, of each step
  Nanos start_;                               // these since Begin
  size_t next_;
};

std::vector<double> MeasureReady(const GradientPieces& pieces, const MeasuredWorker& worker) {
  ReadyTimes times(pieces);
  std::vector<float> gradients(static_cast<size_t>(pieces.total()) + Reducer::kTailSize);
  std::vector<float> state(worker.state.begin(), worker.state.end());
  for (int step = 0; step < kSteps; ++step) {
    worker.pacer.BeginStep(step);
    times.Begin();
    StepInParts(worker.net, worker.parts, worker.weights.data(), gradients.data(), state.data(),
                InputOf(worker.batch, worker.seed), worker.pacer.Wrap(&times));
    worker.pacer.FinishStep();
  }
  return times.Medians();
}

// Of the last worker, for each piece.
std::vector<double> LastOf(const std::vector<std::string>& all) {
  std::vector<double> last;
  for (const std::string& bytes : all) {
    const auto ready = FromBytes<std::vector<double>>(bytes);
    if (last.empty()) last.resize(ready.size());
    std::transform(last.begin(), last.end(), ready.begin(), last.begin(),
                   [](double a, double b) { return std::max(a, b); });
  }
  return last;
}

// T(M) of what a compressor selects of vectors of these sizes, with the time to select it.
ReduceTable MeasureSelections(Transport& transport, const ExchangeSpec& spec, int64_t bytes_most) {
  const CompressConfig& compress = spec.actors.compress;
  const auto sums =
      MakeSparseCollective(compress.exchange, transport, {.node_of = spec.rank_nodes});
  const Random random(spec.seed, Purpose::kSelfTest, static_cast<uint64_t>(transport.rank()));
  const std::vector<int64_t> sizes = SizesToMeasure(bytes_most);
  std::vector<float> all(static_cast<size_t>(sizes.back()) / sizeof(float));
  for (size_t i = 0; i < all.size(); ++i) all[i] = random.Normal(i);
  return MeasureSums(transport, sizes, [&](size_t unit) {
    const std::span<const float> values(all.data(),
                                        static_cast<size_t>(sizes[unit]) / sizeof(float));
    const std::vector<int32_t> places =
        SelectFrom(*compress.compressor, values, compress.density, {});
    std::vector<float> chosen;
    for (const int32_t place : places) chosen.push_back(values[static_cast<size_t>(place)]);
    const int64_t n = std::ssize(values);
    const int64_t ticket =
        sums->Start(static_cast<int>(unit), n, EntriesAsked(compress.density, n), {places, chosen});
    WaitFor(*sums, ticket);
    sums->Release(ticket);
  });
}

// T(M) of vectors that a cast rounds, with the time to round them.
ReduceTable MeasureRoundedSums(Transport& transport, const ExchangeSpec& spec, int64_t bytes_most) {
  const Wire wire = spec.actors.compress.wire();
  const auto collective = MakeCollective(spec.collective, transport, spec.collective_options());
  const std::vector<int64_t> sizes = SizesToMeasure(bytes_most);
  std::vector<float> kept(static_cast<size_t>(sizes.back()) / sizeof(float)), sent(kept.size());
  return MeasureSums(transport, sizes, [&](size_t i) {
    const size_t count = static_cast<size_t>(sizes[i]) / sizeof(float);
    SplitRounded(wire, sent.data(), kept.data(), static_cast<int64_t>(count));
    WaitFor(*collective, collective->StartRounded({sent.data(), count}, {wire, kept.data()}));
  });
}

}  // namespace

GradientPieces MeasurePieces(Transport& transport, const ExchangeSpec& spec,
                             const MeasuredWorker& worker) {
  GradientPieces pieces = spec.pieces;
  transport.Barrier();
  const std::string mine = ToBytes(MeasureReady(pieces, worker));
  const std::string last = ToBytes(LastOf(Gather(transport, mine)));
  pieces.ready = FromBytes<std::vector<double>>(Broadcast(transport, last));

  ReduceTable table;
  const int64_t bytes = (spec.size() + Reducer::kTailSize) * static_cast<int64_t>(sizeof(float));
  if (transport.size() > 1 && spec.actors.compress.selects()) {
    table = MeasureSelections(transport, spec, bytes);
  } else if (transport.size() > 1 && spec.actors.compress.rounds()) {
    table = MeasureRoundedSums(transport, spec, bytes);
  } else if (transport.size() > 1) {
    const auto collective = MakeCollective(spec.collective, transport, spec.collective_options());
    table = MeasureReductions(transport, *collective, bytes);
  }
  table.entries =
      FromBytes<std::vector<ReduceTable::Entry>>(Broadcast(transport, ToBytes(table.entries)));
  pieces.reduce_seconds = [table](int64_t bytes) { return table.Seconds(bytes); };
  return pieces;
}

}  // namespace dtrain
