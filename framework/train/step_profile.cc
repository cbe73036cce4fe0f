#include "framework/train/step_profile.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/comm/collective.h"
#include "framework/comm/device_collective.h"
#include "framework/comm/gather.h"
#include "framework/comm/reduce_time.h"
#include "framework/comm/sparse_collective.h"
#include "framework/core/bytes.h"
#include "framework/core/random.h"
#include "framework/exchange/rank_parts.h"
#include "framework/exchange/reducer.h"
#include "framework/launch/stop_signal.h"
#include "framework/train/layer_times.h"
#include "framework/train/ready_times.h"
#include "framework/train/training_step.h"

namespace dtrain {
namespace {

constexpr int kWarmUp = 5;  // skipped steps: caches, clock frequencies, first touches of memory

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

// True if no rank has been asked to stop.  Collective: all ranks get the same answer.
bool GoesOn(Transport& transport) {
  const std::vector<std::string> all = Gather(transport, StopRequested() ? "stop" : "");
  const bool stops =
      std::any_of(all.begin(), all.end(), [](const auto& it) { return !it.empty(); });
  return Broadcast(transport, stops ? "stop" : "").empty();
}

// Measures this rank's steps, and ends early if it is asked to stop.
void MeasureSteps(const MeasuredWorker& worker, const LayerGradients& layer_gradients,
                  ReadyTimes& times, LayerTimes& layers) {
  ReadyToTimes sink(times);
  std::vector<float> gradients(static_cast<size_t>(layer_gradients.total()) + Reducer::kTailSize);
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

// Holds a worker's vectors in a step with a compressor, and performs the operations on them.
class MeasuredSelection {
 public:
  MeasuredSelection(Transport& transport, const ExchangeSpec& spec, int64_t bytes_most)
      : compress_(spec.actors.compress),
        gradient_(static_cast<size_t>(bytes_most) / sizeof(float)),
        residual_(gradient_.size()),
        sum_(gradient_.size()) {
    const Random random(spec.seed, Purpose::kSelfTest, static_cast<uint64_t>(transport.rank()));
    for (size_t i = 0; i < gradient_.size(); ++i) gradient_[i] = random.Normal(i);
    if (compress_.PaysDense(compress_.density, transport.size())) {
      // Selections are measured in host memory, where not all collectives are.
      const bool known = CollectiveRegistry::Find(spec.collective) != nullptr;
      dense_ =
          MakeCollective(known ? spec.collective : "ordered", transport, spec.collective_options());
    } else {
      sparse_ = MakeSparseCollective(compress_.exchange, transport, {.node_of = spec.rank_nodes});
    }
  }

  // Selects from the first n elements and adds up the selections of all workers.  Each `unit` has its own threshold.
  void Sum(int unit, size_t n) {
    for (size_t i = 0; i < n; ++i) residual_[i] += gradient_[i];
    const std::vector<int32_t> places =
        SelectFrom(*compress_.compressor, {residual_.data(), n}, compress_.density,
                   {.call = call_++, .threshold = thresholds_[unit]}, &thresholds_[unit]);
    chosen_.clear();
    for (const int32_t place : places) {
      chosen_.push_back(std::exchange(residual_[static_cast<size_t>(place)], 0.0f));
    }
    std::fill_n(sum_.begin(), n, 0.0f);
    if (dense_ != nullptr) {
      Add({places, chosen_});
      return WaitFor(*dense_, dense_->Start({sum_.data(), n}));
    }
    const auto count = static_cast<int64_t>(n);
    const int64_t ticket =
        sparse_->Start(unit, count, EntriesAsked(compress_.density, count), {places, chosen_});
    WaitFor(*sparse_, ticket);
    for (const SparseEntries& part : sparse_->Of(ticket).parts) Add(part);
    sparse_->Release(ticket);
  }

 private:
  void Add(const SparseEntries& entries) {
    for (size_t i = 0; i < entries.positions.size(); ++i) {
      sum_[static_cast<size_t>(entries.positions[i])] += entries.values[i];
    }
  }

  const CompressConfig& compress_;
  std::vector<float> gradient_, residual_, sum_, chosen_;
  std::unique_ptr<Collective> dense_;
  std::unique_ptr<SparseCollective> sparse_;
  std::map<int, float> thresholds_;
  int64_t call_ = 0;
};

// Measures T(M) of sparse all-reduces of vectors of several sizes, including everything that a compressor does in a
// step.
ReduceTable MeasureSelections(Transport& transport, const ExchangeSpec& spec, int64_t bytes_most,
                              const std::function<bool()>& go_on) {
  const std::vector<int64_t> sizes = SizesToMeasure(bytes_most);
  MeasuredSelection selection(transport, spec, sizes.back());
  return MeasureSums(transport, sizes, go_on, [&](size_t unit) {
    selection.Sum(static_cast<int>(unit), static_cast<size_t>(sizes[unit]) / sizeof(float));
  });
}

// Measures T(M) of vectors that a cast rounds, including the rounding.
ReduceTable MeasureRoundedSums(Transport& transport, const ExchangeSpec& spec, int64_t bytes_most,
                               const std::function<bool()>& go_on) {
  const Wire wire = spec.actors.compress.wire();
  const auto collective = MakeCollective(spec.collective, transport, spec.collective_options());
  // The limit of small vectors applies to the bytes that are sent.
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

// Returns, for each layer's gradient, the latest ready time of all ranks.  `all` has ToBytes of each rank's times.
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

}  // namespace

std::optional<ReduceTable> MeasureAllReduceTimes(Transport& transport, const ExchangeSpec& spec,
                                                 const Device& device) {
  ReduceTable table;
  const int64_t bytes = (spec.size() + Reducer::kTailSize) * static_cast<int64_t>(sizeof(float));
  const auto go_on = [&] { return GoesOn(transport); };
  if (transport.size() > 1 && spec.actors.compress.selects()) {
    table = MeasureSelections(transport, spec, bytes, go_on);
  } else if (transport.size() > 1 && spec.actors.compress.rounds()) {
    table = MeasureRoundedSums(transport, spec, bytes, go_on);
  } else if (transport.size() > 1) {
    const bool there = StaysOnDevice(spec, device, transport);
    const auto collective =
        there ? DeviceCollectiveRegistry::Get("collective", spec.collective).make(transport, device)
              : MakeCollective(spec.collective, transport, spec.collective_options());
    const Buffer memory(there ? device : Device{},
                        static_cast<size_t>(SizesToMeasure(bytes).back()));
    table = MeasureReductions(transport, *collective,
                              {memory.f32(), memory.bytes() / sizeof(float)}, go_on);
    collective->Rest();
    transport.Barrier();  // no rank frees what another has mapped
  }
  if (transport.size() > 1 && table.entries.empty()) return std::nullopt;
  table.entries =
      FromBytes<std::vector<ReduceTable::Entry>>(Broadcast(transport, ToBytes(table.entries)));
  return table;
}

std::optional<Measurement> Measure(Transport& transport, const ExchangeSpec& spec,
                                   const MeasuredWorker& worker) {
  transport.Barrier();
  ReadyTimes times(spec.layer_gradients, kMeasuredSteps);
  LayerTimes layers(worker.net);
  MeasureSteps(worker, spec.layer_gradients, times, layers);
  if (!GoesOn(transport)) return std::nullopt;
  Measurement measured;
  const std::string last = ToBytes(LastOf(Gather(transport, ToBytes(times.Medians(kWarmUp)))));
  measured.ready = FromBytes<std::vector<double>>(Broadcast(transport, last));
  measured.layers = layers.Layers(worker.batch.samples, kWarmUp);
  std::optional<ReduceTable> sums = MeasureAllReduceTimes(transport, spec, worker.net.device());
  if (!sums) return std::nullopt;
  measured.sums = std::move(*sums);
  return measured;
}

}  // namespace dtrain
