#include "framework/bench/selection/bench_topk.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <ostream>

#include <nlohmann/json.hpp>

#include "framework/bench/selection/plain_read.h"
#include "framework/compress/compressor.h"
#include "framework/compress/device_values.h"
#include "framework/core/error.h"
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
  if (!config.sends_entries()) throw UsageError(config.name + " selects no entries");
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

template <class Work>
double SecondsOf(Work work) {
  const Nanos begin = WallNow();
  work();
  return ToSeconds(WallNow() - begin);
}

struct Times {
  double selection = HUGE_VAL, read = HUGE_VAL;
  int64_t selected = 0;
  int samples = 0;
};

// Alternates between the two.  `select` returns the number of selected entries.
template <class Select, class Read>
Times TimeOf(const BenchTopkOptions& options, Select select, Read read) {
  Times times;
  const Nanos begin = WallNow();
  while (times.samples < kSamplesLeast || ToSeconds(WallNow() - begin) < options.seconds) {
    ++times.samples;
    times.read = std::min(times.read, SecondsOf(read));
    times.selection =
        std::min(times.selection, SecondsOf([&] { times.selected = select(times.samples); }));
  }
  return times;
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

Times TimeOnCpu(const Compressor& compressor, const Drawn& drawn, const BenchTopkOptions& options) {
  const Values& values = drawn.values;
  const int64_t d = std::ssize(values);
  std::vector<int32_t> chosen(static_cast<size_t>(compressor.EntriesMost(d, options.density)));
  SelectionKey key;
  key.threshold = SelectOnce(compressor, drawn.before, options.density, key, chosen).threshold;
  volatile uint32_t sink = 0;
  return TimeOf(
      options,
      [&](int call) {
        key.call = call;
        return SelectOnce(compressor, values, options.density, key, chosen).selected;
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

  Times TimeOfSelections(const Compressor& compressor, const BenchTopkOptions& options) {
    SelectionKey key;
    const auto select = [&](const Buffer& from, float* threshold) {
      passes_->Begin(from.f32(), d_);
      return std::ssize(SelectFrom(compressor, *passes_, options.density, key, threshold));
    };
    float threshold = 0;
    select(before_, &threshold);
    key.threshold = threshold;
    return TimeOf(
        options,
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

}  // namespace

int BenchTopk(const BenchTopkOptions& options, const Device& device, std::ostream& out) {
  std::vector<CompressConfig> configs;
  for (const std::string& name : options.compressors) configs.push_back(Read(name));
  for (const int64_t d : options.sizes) {
    const Drawn drawn(options.distribution, d);
    std::optional<DeviceBench> on_device;
    if (device.queue != nullptr) on_device.emplace(device, drawn);
    for (size_t i = 0; i < configs.size(); ++i) {
      const Compressor& compressor = *configs[i].compressor;
      const Times times = on_device ? on_device->TimeOfSelections(compressor, options)
                                    : TimeOnCpu(compressor, drawn, options);
      const nlohmann::ordered_json line = {{"bench", "topk"},
                                           {"compressor", options.compressors[i]},
                                           {"d", d},
                                           {"density", options.density},
                                           {"distribution", options.distribution},
                                           {"device", NameOf(device.kind)},
                                           {"isa", IsaName(CpuIsa())},
                                           {"samples", times.samples},
                                           {"seconds", times.selection},
                                           {"read_seconds", times.read},
                                           {"ratio", times.selection / times.read},
                                           {"selected", times.selected}};
      out << line.dump() << std::endl;
    }
  }
  return 0;
}

}  // namespace dtrain
