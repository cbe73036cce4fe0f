#include "framework/bench/selection/bench_topk.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <numbers>
#include <optional>
#include <ostream>
#include <ranges>
#include <span>
#include <tuple>

#include <nlohmann/json.hpp>

#include "framework/bench/selection/plain_read.h"
#include "framework/compress/coding.h"
#include "framework/compress/compressor.h"
#include "framework/compress/device_values.h"
#include "framework/core/error.h"
#include "framework/core/short_float.h"
#include "framework/core/time.h"
#include "framework/device/buffer.h"

namespace dtrain {
namespace {

constexpr int64_t kSlice = (1 << 20) / sizeof(float);  // as the exchange does
constexpr int kSamplesLeast = 3;
constexpr double kBits = 0x1p-32;  // scale of a random 32-bit word

using Values = std::vector<float>;

// Draws two numbers of the distribution from two random words.
void Draw(const std::string& distribution, uint32_t a, uint32_t b, float* to) {
  if (distribution == "laplace") {
    for (const uint32_t word : {a, b}) {
      const double size = -std::log(((word >> 1) + 0.5) * 2 * kBits);
      *to++ = static_cast<float>((word & 1) != 0 ? size : -size);
    }
    return;
  }
  const double radius = std::sqrt(-2 * std::log((a + 0.5) * kBits));
  const double angle = 2 * std::numbers::pi * b * kBits;
  to[0] = static_cast<float>(radius * std::cos(angle));
  to[1] = static_cast<float>(radius * std::sin(angle));
}

void Fill(const std::string& distribution, uint64_t stream, Values& values) {
  const Random random(1, Purpose::kSelfTest, stream);
  for (size_t i = 0; i < values.size(); i += 4) {
    const auto words = random.Block(i / 4);
    float four[4];
    Draw(distribution, words[0], words[1], four);
    Draw(distribution, words[2], words[3], four + 2);
    std::copy_n(four, std::min<size_t>(4, values.size() - i), values.data() + i);
  }
}

// Reads "gaussiank:loop=published".
CompressConfig Read(const std::string& text) {
  const size_t colon = text.find(':');
  std::string keys = "{name: " + text.substr(0, colon);
  if (colon != std::string::npos) {
    std::string rest = text.substr(colon + 1);
    for (size_t at = 0; (at = rest.find('=', at)) != std::string::npos; at += 2) {
      rest.replace(at, 1, ": ");
    }
    keys += ", " + rest;
  }
  config::Document document = config::Document::FromText("compress: " + keys + "}", text);
  CompressConfig config = ReadCompressConfig(document.root().Section("compress"));
  document.Finish();
  if (!config.on()) throw UsageError("there is nothing to measure without a compressor");
  return config;
}

template <class Work>
void ForSlices(const Values& values, Work work) {
  const int64_t n = std::ssize(values);
  for (int64_t at = 0; at < n; at += kSlice) {
    work(values.data() + at, Range{at, std::min(n, at + kSlice)});
  }
}

struct Outcome {
  int64_t selected = 0;
  float threshold = 0;
};

Outcome SelectOnce(const Compressor& compressor, const Values& values, double density,
                   const SelectionKey& key, std::vector<int32_t>& chosen) {
  // Selects in slices, as the exchange does, so SelectFrom is not used.
  const auto selection = compressor.Select(std::ssize(values), density, key);
  while (selection->WantsLook()) {
    ForSlices(values, [&](const float* part, Range range) { selection->Look(part, range); });
  }
  int64_t count = 0;
  ForSlices(values, [&](const float* part, Range range) {
    count += selection->Choose(part, range, chosen.data() + count);
  });
  return {count, selection->Threshold()};
}

using Now = Nanos (*)();

// The time in which this thread has computed: work of the CPU alone is measured by it, so that other programs on the
// machine do not count.
Nanos ThreadNow() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

template <class Work>
double SecondsOf(Now now, Work work) {
  const Nanos begin = now();
  work();
  return static_cast<double>(now() - begin) / 1e9;  // in few digits, unlike a product with 1e-9
}

// The shortest times of two pieces of work, which alternate.
struct Shortest {
  std::array<double, 2> seconds = {HUGE_VAL, HUGE_VAL};
  int samples = 0;
};

// `once` returns the seconds of both.
template <class Once>
Shortest ShortestOf(const BenchTopkOptions& options, Once once) {
  Shortest times;
  const Nanos begin = WallNow();
  while (times.samples < kSamplesLeast || ToSeconds(WallNow() - begin) < options.seconds) {
    ++times.samples;
    const std::array<double, 2> seconds = once();
    for (size_t i = 0; i < 2; ++i) times.seconds[i] = std::min(times.seconds[i], seconds[i]);
  }
  return times;
}

struct Times {
  double selection, read;
  int64_t selected;
  int samples;
};

// `select` gets the number of the call and returns the number of selected entries.
template <class Select, class Read>
Times TimeOf(const BenchTopkOptions& options, Now now, Select select, Read read) {
  int64_t selected = 0;
  int call = 0;
  const Shortest times = ShortestOf(options, [&] {
    const double reading = SecondsOf(now, read);
    return std::array{reading, SecondsOf(now, [&] { selected = select(++call); })};
  });
  return {times.seconds[1], times.seconds[0], selected, times.samples};
}

// Holds two vectors of one distribution: a selection from the first precedes the measured ones.
struct Drawn {
  Drawn(const std::string& distribution, int64_t d)
      : before(static_cast<size_t>(d)), values(static_cast<size_t>(d)) {
    Fill(distribution, 0, before);
    Fill(distribution, 1, values);
  }
  Values before, values;
};

Times TimeOnCpu(const Compressor& compressor, const Drawn& drawn, double density,
                const BenchTopkOptions& options) {
  const Values& values = drawn.values;
  const int64_t d = std::ssize(values);
  std::vector<int32_t> chosen(static_cast<size_t>(compressor.EntriesMost(d, density)));
  SelectionKey key;
  key.threshold = SelectOnce(compressor, drawn.before, density, key, chosen).threshold;
  volatile uint32_t sink = 0;
  return TimeOf(
      options, ThreadNow,
      [&](int call) {
        key.call = call;
        return SelectOnce(compressor, values, density, key, chosen).selected;
      },
      [&] { sink = DTRAIN_ISA_SELECT(CpuIsa(), PlainRead)(values.data(), d); });
}

// On a device, the plain read is the search for NaN and infinity.
class DeviceBench {
 public:
  DeviceBench(const Device& device, const Drawn& drawn)
      : before_(Copy(device, drawn.before)),
        values_(Copy(device, drawn.values)),
        d_(std::ssize(drawn.values)),
        passes_(MakeDeviceValues(device)) {}

  Times TimeOfSelections(const Compressor& compressor, double density,
                         const BenchTopkOptions& options) {
    SelectionKey key;
    const auto select = [&](const Buffer& from, float* threshold) {
      passes_->Begin(from.f32(), d_);
      return std::ssize(SelectFrom(compressor, *passes_, density, key, threshold));
    };
    float threshold = 0;
    select(before_, &threshold);
    key.threshold = threshold;
    return TimeOf(
        options, WallNow,
        [&](int call) {
          key.call = call;
          return select(values_, nullptr);
        },
        [&] { passes_->Finite(); });
  }

 private:
  static Buffer Copy(const Device& device, const Values& values) {
    Buffer buffer(device, values.size() * sizeof(float));
    CopyIn(buffer.arena(), values.data(), std::ssize(values));
    return buffer;
  }

  const Buffer before_, values_;
  const int64_t d_;
  const std::unique_ptr<DeviceValues> passes_;
};

// Returns the parameters of one matrix and, if they do not fill it, a vector: `d` values in all.
std::vector<ArenaEntry> MatrixOf(int64_t d) {
  const auto rows = static_cast<int64_t>(std::sqrt(static_cast<double>(d)));
  const int64_t columns = d / rows, values = rows * columns;
  std::vector<ArenaEntry> parameters = {{"matrix", {rows, columns}, {0, values}, true}};
  if (values < d) parameters.push_back({"vector", {d - values}, {values, d}, true});
  return parameters;
}

// A step of one worker's coder.  What it receives is what it has sent, as often as there are workers.
class CoderBench {
 public:
  CoderBench(const Coder& coder, const Values& drawn, int workers)
      : parameters_(MatrixOf(std::ssize(drawn))),
        coding_(coder.MakeCoding(parameters_, workers, 1)),
        workers_(static_cast<size_t>(workers)),
        drawn_(drawn),
        sum_(drawn.size()) {
    for (const Coding::Round& round : coding_->rounds()) {
      words_.emplace_back(static_cast<size_t>(round.words));
    }
  }

  // Returns the shortest seconds of encoding, all rounds together, and of decoding.
  Shortest TimeOfSteps(const BenchTopkOptions& options) {
    return ShortestOf(options, [&] {
      values_ = drawn_;
      double encode = 0, decode = 0;
      for (size_t round = 0; round < words_.size(); ++round) {
        encode += SecondsOf(ThreadNow, [&] { Encode(round); });
        decode += SecondsOf(ThreadNow, [&] { Decode(round); });
      }
      return std::array{encode, decode + SecondsOf(ThreadNow, [&] { Finish(); })};
    });
  }

 private:
  void Encode(size_t round) {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      coding_->Encode(static_cast<int>(round), i, values_.data() + parameters_[i].range.begin,
                      words_[round].data());
    }
  }
  void Decode(size_t round) {
    const size_t parts = coding_->rounds()[round].gathered ? workers_ : 1;
    const std::vector<std::span<const float>> all(parts, words_[round]);
    coding_->Decode(static_cast<int>(round), all);
  }
  void Finish() {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const int64_t first = parameters_[i].range.begin;
      coding_->Finish(i, values_.data() + first, sum_.data() + first);
    }
  }

  const std::vector<ArenaEntry> parameters_;
  const std::unique_ptr<Coding> coding_;
  const size_t workers_;
  const Values& drawn_;
  Values values_, sum_;
  std::vector<Values> words_;  // by round
};

// Measures the cases of one compressor and size, and prints their lines.
class CompressorBench {
 public:
  CompressorBench(const BenchTopkOptions& options, const Device& device, std::ostream& out)
      : options_(options), device_(device), out_(out) {}

  void Draw(int64_t d) {
    on_device_.reset();
    drawn_.emplace(options_.distribution, d);
    if (device_.queue != nullptr) on_device_.emplace(device_, *drawn_);
  }

  void Measure(const std::string& given, const CompressConfig& config, CompressCost& cost) {
    if (config.sends_entries()) {
      for (const double density : options_.densities) Select(given, config, density, cost);
    } else if (config.coder() != nullptr) {
      for (const int workers : options_.workers) Code(given, config, workers, cost);
    } else {
      Round(given, config, cost);
    }
  }

 private:
  int64_t d() const { return std::ssize(drawn_->values); }

  void Select(const std::string& given, const CompressConfig& config, double density,
              CompressCost& cost) {
    const Compressor& compressor = *config.compressor;
    const Times times = on_device_ ? on_device_->TimeOfSelections(compressor, density, options_)
                                   : TimeOnCpu(compressor, *drawn_, density, options_);
    Print(given, device_.kind,
          {{"density", density},
           {"distribution", options_.distribution},
           {"samples", times.samples},
           {"seconds", times.selection},
           {"read_seconds", times.read},
           {"ratio", times.selection / times.read},
           {"selected", times.selected}});
    cost.samples.push_back({.density = density, .entries = d(), .seconds = times.selection});
  }

  void Round(const std::string& given, const CompressConfig& config, CompressCost& cost) {
    Values kept = drawn_->values, sent(kept.size());
    volatile uint32_t sink = 0;
    const Shortest times = ShortestOf(options_, [&] {
      kept = drawn_->values;
      const double rounding = SecondsOf(ThreadNow, [&] {
        ForSlices(kept, [&](const float*, Range slice) {
          SplitRounded(config.wire(), sent.data() + slice.begin, kept.data() + slice.begin,
                       slice.size());
        });
      });
      const auto read = DTRAIN_ISA_SELECT(CpuIsa(), PlainRead);
      return std::array{rounding, SecondsOf(ThreadNow, [&] { sink = read(kept.data(), d()); })};
    });
    Print(given, DeviceKind::kCpu,
          {{"samples", times.samples},
           {"seconds", times.seconds[0]},
           {"read_seconds", times.seconds[1]},
           {"ratio", times.seconds[0] / times.seconds[1]}});
    cost.samples.push_back({.entries = d(), .seconds = times.seconds[0]});
  }

  void Code(const std::string& given, const CompressConfig& config, int workers,
            CompressCost& cost) {
    CoderBench coder(*config.coder(), drawn_->values, workers);
    const Shortest times = coder.TimeOfSteps(options_);
    Print(given, DeviceKind::kCpu,
          {{"workers", workers},
           {"samples", times.samples},
           {"seconds", times.seconds[0]},
           {"decode_seconds", times.seconds[1]}});
    cost.samples.push_back({.workers = workers,
                            .entries = d(),
                            .seconds = times.seconds[0],
                            .decode_seconds = times.seconds[1]});
  }

  void Print(const std::string& given, DeviceKind device, const nlohmann::ordered_json& measured) {
    nlohmann::ordered_json line = {{"bench", "topk"},
                                   {"compressor", given},
                                   {"d", d()},
                                   {"device", NameOf(device)},
                                   {"isa", IsaName(CpuIsa())}};
    line.update(measured);
    out_ << line.dump() << std::endl;
  }

  const BenchTopkOptions& options_;
  const Device& device_;
  std::ostream& out_;
  std::optional<Drawn> drawn_;
  std::optional<DeviceBench> on_device_;
};

// Adds the cost, or its samples to those of the same compressor.
void Add(CompressCost cost, std::vector<CompressCost>& costs) {
  std::ranges::sort(cost.samples, {}, [](const CompressCost::Sample& it) {
    return std::tuple(it.density, it.workers, it.entries);
  });
  const auto same = [](const CompressCost::Sample& a, const CompressCost::Sample& b) {
    return std::tie(a.density, a.workers, a.entries) == std::tie(b.density, b.workers, b.entries);
  };
  const auto [first, last] = std::ranges::unique(cost.samples, same);
  cost.samples.erase(first, last);
  const auto is_it = [&](const CompressCost& it) { return it.compressor == cost.compressor; };
  if (std::ranges::none_of(costs, is_it)) costs.push_back(std::move(cost));
}

}  // namespace

BenchTopkOptions BenchTopkOptions::ForCosts() {
  BenchTopkOptions options;
  options.compressors = {"gaussiank:loop=published"};
  for (const std::string& name : CompressorRegistry::Names()) options.compressors.push_back(name);
  options.sizes = {1'000, 10'000, 100'000, 1'000'000, 10'000'000};
  options.densities = {0.001, 0.01, 0.1};
  return options;
}

int BenchTopk(const BenchTopkOptions& options, const Device& device, std::ostream& out,
              std::vector<CompressCost>* costs) {
  std::vector<CompressConfig> configs;
  for (const std::string& name : options.compressors) configs.push_back(Read(name));
  std::vector<CompressCost> measured(configs.size());
  CompressorBench bench(options, device, out);
  for (const int64_t d : options.sizes) {
    bench.Draw(d);
    for (size_t i = 0; i < configs.size(); ++i) {
      bench.Measure(options.compressors[i], configs[i], measured[i]);
    }
  }
  if (costs == nullptr) return 0;
  for (size_t i = 0; i < configs.size(); ++i) {
    measured[i].compressor = configs[i].cost_name();
    Add(std::move(measured[i]), *costs);
  }
  return 0;
}

}  // namespace dtrain
