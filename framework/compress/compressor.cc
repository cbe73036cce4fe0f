#include "framework/compress/compressor.h"

#include <algorithm>
#include <cmath>

#include "framework/compress/device_values.h"
#include "framework/core/check.h"

namespace dtrain {
namespace {

// This is larger than the rounding error of density * n, but far smaller than one entry.
constexpr double kRounding = 1e-12;
constexpr uint64_t kUnitsMost = uint64_t{1} << 31;

Compressor::Scope ScopeOf(const std::string& name) {
  if (name == "layer") return Compressor::Scope::kLayer;
  return name == "bucket" ? Compressor::Scope::kBucket : Compressor::Scope::kModel;
}

const char* NameOf(Compressor::Scope scope) {
  return scope == Compressor::Scope::kLayer    ? "layer"
         : scope == Compressor::Scope::kBucket ? "bucket"
                                               : "model";
}

template <class Look, class Choose>
std::vector<int32_t> SelectIn(const Compressor& compressor, int64_t n, double density,
                              const SelectionKey& key, float* threshold, Look look, Choose choose) {
  const std::unique_ptr<Selection> selection = compressor.Select(n, density, key);
  while (selection->WantsLook()) look(*selection);
  const int64_t most = compressor.EntriesMost(n, density);
  std::vector<int32_t> chosen(static_cast<size_t>(most));
  const int64_t count = choose(*selection, chosen.data());
  DT_CHECK(count <= most) << count << " entries chosen of at most " << most;
  chosen.resize(static_cast<size_t>(count));
  if (threshold != nullptr) *threshold = selection->Threshold();
  return chosen;
}

}  // namespace

void ReadCompressorKeys(config::Reader& reader, Compressor& compressor, CompressConfig& config) {
  if (!compressor.sends_entries()) return compressor.Configure(reader, config);
  if (!compressor.density_by_strategy()) {
    config.density =
        reader.Number("density", 0.01)
            .Above(0)
            .Max(1)
            .Help("fraction of the gradient's entries to send; 1: all, as without a compressor");
    config.density_warmup =
        reader.Numbers("density_warmup", {})
            .Above(0)
            .Max(1)
            .Help("densities of the first epochs, one per epoch; `density` follows");
    config.dense_steps = reader.Int("dense_steps", 0)
                             .Min(0)
                             .Help(
                                 "number of first steps in which the whole gradient is sent, as "
                                 "without a compressor");
  }
  config.scope = ScopeOf(reader.String("scope", NameOf(compressor.default_scope()))
                             .OneOf({"layer", "bucket", "model"})
                             .Help("unit within which entries are selected: each layer, each "
                                   "bucket, or the whole model"));
  compressor.Configure(reader, config);
}

CompressConfig ReadCompressConfig(config::Reader reader) {
  std::vector<std::string> names = {"none"};
  for (const std::string& name : CompressorRegistry::Names()) names.push_back(name);
  const std::string name =
      reader.String("name", "none")
          .OneOf(names)
          .Help("name of a compressor, or none; dtrain list compressors shows them");
  CompressConfig config;
  if (name == "none" || CompressorRegistry::Find(name) == nullptr) return config;
  std::shared_ptr<Compressor> compressor = CompressorRegistry::Get("compressor", name).make();
  ReadCompressorKeys(reader, *compressor, config);
  config.name = name;
  config.compressor = std::move(compressor);
  return config;
}

std::vector<Range> UnitsOf(Compressor::Scope scope, Range range, std::span<const Range> layers,
                           std::span<const Range> buckets) {
  if (scope == Compressor::Scope::kModel) return {range};
  std::vector<Range> units;
  for (const Range& whole : scope == Compressor::Scope::kLayer ? layers : buckets) {
    const Range part{std::max(whole.begin, range.begin), std::min(whole.end, range.end)};
    if (!part.empty()) units.push_back(part);
  }
  return units;
}

bool CompressConfig::FollowsBuckets() const {
  if (!sends_entries()) return rounds();
  return scope == Compressor::Scope::kBucket ||
         (exchange != "gather" && scope != Compressor::Scope::kModel);
}

double CompressConfig::DensityAt(int64_t epoch) const {
  return epoch < std::ssize(density_warmup) ? density_warmup[static_cast<size_t>(epoch)] : density;
}

double CompressConfig::DensityAt(int64_t epoch, int64_t step) const {
  return step < dense_steps ? 1 : DensityAt(epoch);
}

int64_t FloorOfShare(double density, int64_t n) {
  return static_cast<int64_t>(std::floor(density * static_cast<double>(n) * (1 + kRounding)));
}

int64_t CeilOfShare(double density, int64_t n) {
  return static_cast<int64_t>(std::ceil(density * static_cast<double>(n) * (1 - kRounding)));
}

int64_t EntriesAsked(double density, int64_t n) {
  return std::max<int64_t>(FloorOfShare(density, n), 1);
}

int64_t Compressor::Asked(int64_t n, double density) const { return EntriesAsked(density, n); }

Random RandomOf(const SelectionKey& key) {
  return {key.seed, Purpose::kSelection, static_cast<uint64_t>(key.actor),
          static_cast<uint64_t>(key.call) * kUnitsMost + static_cast<uint64_t>(key.unit)};
}

void Selection::LookOn(DeviceValues& values) { Look(values.All(), {0, values.size()}); }

int64_t Selection::ChooseOn(DeviceValues& values, int32_t* chosen) {
  return Choose(values.All(), {0, values.size()}, chosen);
}

std::vector<int32_t> SelectFrom(const Compressor& compressor, std::span<const float> values,
                                double density, const SelectionKey& key, float* threshold) {
  const Range whole{0, static_cast<int64_t>(values.size())};
  return SelectIn(
      compressor, whole.size(), density, key, threshold,
      [&](Selection& selection) { selection.Look(values.data(), whole); },
      [&](Selection& selection, int32_t* chosen) {
        return selection.Choose(values.data(), whole, chosen);
      });
}

std::vector<int32_t> SelectFrom(const Compressor& compressor, DeviceValues& values, double density,
                                const SelectionKey& key, float* threshold) {
  return SelectIn(
      compressor, values.size(), density, key, threshold,
      [&](Selection& selection) { selection.LookOn(values); },
      [&](Selection& selection, int32_t* chosen) { return selection.ChooseOn(values, chosen); });
}

}  // namespace dtrain
