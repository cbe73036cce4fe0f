#include "framework/data/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "framework/core/check.h"
#include "framework/core/error.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

class LimitedDataset : public WrappedDataset {
 public:
  LimitedDataset(std::unique_ptr<Dataset> whole, int64_t limit)
      : WrappedDataset(std::move(whole)), limit_(limit) {}

  int64_t size(Split split) const override { return std::min(limit_, whole().size(split)); }
  std::span<const uint16_t> ClassOf(Split split) const override {
    const auto classes = whole().ClassOf(split);
    return classes.empty() ? classes : classes.first(static_cast<size_t>(size(split)));
  }
  std::vector<SampleLength> Lengths(Split split) const override {
    std::vector<SampleLength> lengths = whole().Lengths(split);
    if (!lengths.empty()) lengths.resize(static_cast<size_t>(size(split)));
    return lengths;
  }
  // sentence_pairs() is the whole set's, vocabularies included; its first sentences are this set's.
  DataHashes Hashes() const override {
    const std::string text = " limit " + std::to_string(limit_);
    DataHashes hashes = whole().Hashes();
    hashes.all = DerivedHash(hashes.all, text);
    for (std::string& hash : hashes.splits) hash = DerivedHash(hash, text);
    return hashes;
  }

 private:
  const int64_t limit_;
};

class LimitedSource : public DatasetSource {
 public:
  LimitedSource(std::shared_ptr<const DatasetSource> whole, int64_t limit)
      : whole_(std::move(whole)), limit_(limit) {}

  std::vector<FieldSpec> fields() const override { return whole_->fields(); }
  int64_t size(Split split) const override { return std::min(limit_, whole_->size(split)); }
  int64_t classes() const override { return whole_->classes(); }
  bool has_validation() const override { return whole_->has_validation(); }
  double test_share() const override { return whole_->test_share(); }
  bool is_read() const override { return whole_->is_read(); }
  std::vector<RemoteFile> files() const override { return whole_->files(); }
  std::unique_ptr<Dataset> Load(const std::filesystem::path& folder, uint64_t seed) const override {
    return std::make_unique<LimitedDataset>(whole_->Load(folder, seed), limit_);
  }

 private:
  std::shared_ptr<const DatasetSource> whole_;
  int64_t limit_;
};

// An empty variable counts as unset (XDG Base Directory Specification).
fs::path FromEnvironment(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? fs::path() : fs::path(value);
}

}  // namespace

void WrappedDataset::KeepTargets() {
  DT_CHECK(own_ != nullptr) << "a set that others read";
  own_->KeepTargets();
}

void WrappedDataset::Normalise(const ImageSetSpec& like) {
  DT_CHECK(own_ != nullptr) << "a set that others read";
  own_->Normalise(like);
}

Batch::Batch(const std::vector<FieldSpec>& specs, int64_t max_samples, const Device& device)
    : on_device(device.queue != nullptr) {
  samples = max_samples;
  for (const FieldSpec& spec : specs) {
    const Shape shape = spec.sample_shape.Prepend(max_samples);
    memory.emplace_back(device, static_cast<size_t>(shape.count()) * SizeOf(spec.dtype));
    fields.push_back({memory.back().data(), shape, spec.dtype, Format::kPlain});
  }
}

void Batch::Resize(int64_t new_samples) {
  samples = new_samples;
  for (size_t i = 0; i < fields.size(); ++i) {
    Tensor& field = fields[i];
    field.shape[0] = new_samples;
    DT_CHECK(new_samples >= 0 &&
             static_cast<size_t>(field.shape.count()) * SizeOf(field.dtype) <= memory[i].bytes())
        << "batch resized to " << new_samples << " samples, made for fewer";
  }
}

void Batch::Resize(int64_t new_samples, std::span<const Shape> sample_shapes) {
  for (size_t i = 0; i < fields.size(); ++i)
    fields[i].shape = sample_shapes[i].Prepend(new_samples);
  Resize(new_samples);
}

int64_t Dataset::TermsOf(Split split, std::span<const int64_t> indices) const {
  int64_t terms = 0;
  for (const int64_t index : indices) terms += Terms(split, index);
  return terms;
}

std::vector<fs::path> DataPlaces(const std::string& name, const std::string& root) {
  if (!root.empty()) return {fs::path(root) / name};
  std::vector<fs::path> places;
  if (const fs::path data = FromEnvironment("DTRAIN_DATA"); !data.empty()) {
    places.push_back(data / name);
  }
  if (const fs::path cache = FromEnvironment("XDG_CACHE_HOME"); !cache.empty()) {
    places.push_back(cache / "dtrain" / name);
  }
  if (const fs::path home = FromEnvironment("HOME"); !home.empty()) {
    places.push_back(home / ".cache" / "dtrain" / name);
  }
  return places;
}

fs::path LocateData(const std::string& name, const std::string& root) {
  std::string looked;
  for (const fs::path& place : DataPlaces(name, root)) {
    std::error_code ignored;
    if (fs::is_directory(place, ignored)) return place;
    looked += fmt::format("\n  no folder {}", place.string());
  }
  throw DataError(
      fmt::format("data set '{}' is not here; looked at{}", name,
                  looked.empty() ? " nothing: DTRAIN_DATA and HOME are not set" : ":" + looked),
      fmt::format("dtrain data fetch {}, or point data.root or DTRAIN_DATA at the folder above it",
                  name));
}

fs::path FetchFolder(const std::string& name, const std::string& root) {
  if (!root.empty()) return fs::path(root) / name;
  if (const fs::path cache = FromEnvironment("XDG_CACHE_HOME"); !cache.empty()) {
    return cache / "dtrain" / name;
  }
  if (const fs::path home = FromEnvironment("HOME"); !home.empty()) {
    return home / ".cache" / "dtrain" / name;
  }
  throw DataError(fmt::format("no folder to put data set '{}' into: HOME is not set", name),
                  "set XDG_CACHE_HOME, or name a folder with --root");
}

std::shared_ptr<const DatasetSource> LimitSource(std::shared_ptr<const DatasetSource> source,
                                                 int64_t limit) {
  return std::make_shared<LimitedSource>(std::move(source), limit);
}

}  // namespace dtrain
