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
#include "framework/exchange/reducer.h"
#include "framework/runtime/launch/stop_signal.h"
#include "framework/runtime/run/layer_times.h"
#include "framework/runtime/run/ready_times.h"
#include "framework/runtime/run/training_step.h"

namespace dtrain {
namespace {

constexpr int kWarmUp = 5;  // of them: caches, frequencies, first touches of memory

class ReadyToTimes : public GradientSink {
 public:
  explicit ReadyToTimes(ReadyTimes& times) : times_(times) {}
  void Ready(Range range, const ReadyEvent& written) override {
    written.Wait();
    times_.Ready(range);
  }

 private:
  ReadyTimes& times_;
};

// Whether no rank has been asked to stop; the same on all.
bool GoesOn(Transport& transport) {
  const std::vector<std::string> all = Gather(transport, StopRequested() ? "stop" : "");
  const bool stops =
      std::any_of(all.begin(), all.end(), [](const auto& it) { return !it.empty(); });
  return Broadcast(transport, stops ? "stop" : "").empty();
}

// This rank's; what there is of them when it is asked to stop.
void MeasureSteps(const MeasuredWorker& worker, const GradientPieces& pieces, ReadyTimes& times,
                  LayerTimes& layers) {
  ReadyToTimes sink(times);
  std::vector<float> gradients(static_cast<size_t>(pieces.total()) + Reducer::kTailSize);
  std::vector<float> state(worker.state.begin(), worker.state.end());
  for (int step = 0; step < kMeasuredSteps && !StopRequested(); ++step) {
    worker.pacer.BeginStep(step);
    times.BeginStep();
    StepInParts(worker.net, worker.parts, worker.weights.data(), gradients.data(), state.data(),
                InputOf(worker.batch, worker.seed), worker.pacer.Wrap(&sink));
    worker.pacer.FinishStep();
    layers.EndStep();
  }
}

// T(M) of what a compressor selects of vectors of these sizes, with the time to select it.
ReduceTable MeasureSelections(Transport& transport, const ExchangeSpec& spec, int64_t bytes_most,
                              const std::function<bool()>& go_on) {
  const CompressConfig& compress = spec.actors.compress;
  const auto sums =
      MakeSparseCollective(compress.exchange, transport, {.node_of = spec.rank_nodes});
  const Random random(spec.seed, Purpose::kSelfTest, static_cast<uint64_t>(transport.rank()));
  const std::vector<int64_t> sizes = SizesToMeasure(bytes_most);
  std::vector<float> all(static_cast<size_t>(sizes.back()) / sizeof(float));
  for (size_t i = 0; i < all.size(); ++i) all[i] = random.Normal(i);
  return MeasureSums(transport, sizes, go_on, [&](size_t unit) {
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
ReduceTable MeasureRoundedSums(Transport& transport, const ExchangeSpec& spec, int64_t bytes_most,
                               const std::function<bool()>& go_on) {
  const Wire wire = spec.actors.compress.wire();
  const auto collective = MakeCollective(spec.collective, transport, spec.collective_options());
  // A small vector is one that is small as it travels.
  const int64_t small = SmallBytesOf(spec.collective, transport.size()) *
                        static_cast<int64_t>(sizeof(float)) / BytesOf(wire);
  const std::vector<int64_t> sizes = SizesToMeasure(bytes_most, small);
  std::vector<float> kept(static_cast<size_t>(sizes.back()) / sizeof(float)), sent(kept.size());
  return MeasureSums(transport, sizes, go_on, [&](size_t i) {
    const size_t count = static_cast<size_t>(sizes[i]) / sizeof(float);
    SplitRounded(wire, sent.data(), kept.data(), static_cast<int64_t>(count));
    WaitFor(*collective, collective->StartRounded({sent.data(), count}, {wire, kept.data()}));
  });
}

}  // namespace

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

std::optional<ReduceTable> MeasureSumTimes(Transport& transport, const ExchangeSpec& spec) {
  ReduceTable table;
  const int64_t bytes = (spec.size() + Reducer::kTailSize) * static_cast<int64_t>(sizeof(float));
  const auto go_on = [&] { return GoesOn(transport); };
  if (transport.size() > 1 && spec.actors.compress.selects()) {
    table = MeasureSelections(transport, spec, bytes, go_on);
  } else if (transport.size() > 1 && spec.actors.compress.rounds()) {
    table = MeasureRoundedSums(transport, spec, bytes, go_on);
  } else if (transport.size() > 1) {
    const auto collective = MakeCollective(spec.collective, transport, spec.collective_options());
    table = MeasureReductions(transport, *collective, bytes, go_on);
  }
  if (transport.size() > 1 && table.entries.empty()) return std::nullopt;
  table.entries =
      FromBytes<std::vector<ReduceTable::Entry>>(Broadcast(transport, ToBytes(table.entries)));
  return table;
}

std::optional<Measurement> Measure(Transport& transport, const ExchangeSpec& spec,
                                   const MeasuredWorker& worker) {
  transport.Barrier();
  ReadyTimes times(spec.pieces, kMeasuredSteps);
  LayerTimes layers(worker.net);
  MeasureSteps(worker, spec.pieces, times, layers);
  if (!GoesOn(transport)) return std::nullopt;
  Measurement measured;
  const std::string last = ToBytes(LastOf(Gather(transport, ToBytes(times.Medians(kWarmUp)))));
  measured.ready = FromBytes<std::vector<double>>(Broadcast(transport, last));
  measured.layers = layers.Layers(worker.batch.samples, kWarmUp);
  std::optional<ReduceTable> sums = MeasureSumTimes(transport, spec);
  if (!sums) return std::nullopt;
  measured.sums = std::move(*sums);
  return measured;
}

}  // namespace dtrain
