// Dataset: samples by index.  Shuffling, sharding, batching and prefetch are wrappers (sampler.h,
// batches.h), so a data set is only "how many" and "give me these".
//
// A new data set is a new folder datasets/<name>/ with DTRAIN_DATASET(...) in it.
#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/config/reader.h"
#include "framework/core/registry.h"
#include "framework/data/splits.h"
#include "framework/device/buffer.h"
#include "framework/device/device.h"
#include "framework/device/tensor.h"

namespace dtrain {

// The epoch of reading outside of training: samples come as they are, of any split.
inline constexpr uint64_t kNoEpoch = std::numeric_limits<uint64_t>::max();

// Rows of every field, in FieldSpec order, row-major.  Made once for the largest batch and
// refilled.
//
// A loss is averaged over its terms: the samples, where each has one label, or the words that a
// translation should have.  So the gradient of a batch is scaled by 1 / global_terms.
struct Batch {
  int64_t samples = 0;         // rows in use
  int64_t first_position = 0;  // of row 0 in the global batch
  int64_t global_samples = 0;  // of the global batch this is a share of
  int64_t terms = 0;           // of the loss of these samples
  int64_t global_terms = 0;    // and of the global batch
  uint64_t step = 0;
  uint64_t epoch = 0;
  std::vector<Tensor> fields;  // shape[0] == samples
  std::vector<Buffer> memory;  // behind the fields
  bool on_device = false;      // that memory is a device's own

  Batch() = default;
  Batch(const std::vector<FieldSpec>& specs, int64_t max_samples, const Device& device = {});
  void Resize(int64_t new_samples);  // <= max_samples; sets shape[0]
  // Does the same with other sample shapes, which must fit into what it was made for.
  void Resize(int64_t new_samples, std::span<const Shape> sample_shapes);
};

// SampleLength tells how long a sample is, for batches of samples that are alike: they are sorted by `length`, and
// among equal ones by `second`.
struct SampleLength {
  int64_t length = 0;
  int64_t second = 0;
  friend auto operator<=>(const SampleLength&, const SampleLength&) = default;
};

// The samples of a set, kept in a device's memory.  One thread at a time asks.
class ResidentSamples {
 public:
  virtual ~ResidentSamples() = default;
  // Does what Dataset::Fill does, for a batch on that device.
  virtual void Fill(Split split, std::span<const int64_t> indices, uint64_t epoch,
                    Batch& batch) = 0;
};

class SentencePairs;
struct ImageSetSpec;

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size(Split split) const = 0;
  virtual std::vector<FieldSpec> fields() const = 0;
  virtual int64_t classes() const = 0;
  // Looked at while training, so that the test split is used at the end only.
  virtual bool has_validation() const { return false; }

  // Terms of the loss of one sample (Batch).
  virtual int64_t Terms(Split split, int64_t index) const { return 1; }
  int64_t TermsOf(Split split, std::span<const int64_t> indices) const;  // their sum
  // Returns the length of each sample of a split, by which Sampler puts samples that are alike into the same batch;
  // empty where they have none.
  virtual std::vector<SampleLength> Lengths(Split split) const { return {}; }
  // Writes the sample shape that a batch of these samples needs, for every field whose samples
  // differ in length; the others' stay as fields() says.  The same in any order of the indices.
  virtual void SampleShapes(Split split, std::span<const int64_t> indices,
                            std::span<Shape> shapes) const {}

  // Writes sample indices[r] into row r of every field of `batch` (already resized).  Normalised
  // and, for the training split in an epoch (not kNoEpoch), augmented as a pure function of (seed,
  // epoch, index).  Thread-safe.
  virtual void Fill(Split split, std::span<const int64_t> indices, uint64_t epoch,
                    Batch& batch) const = 0;

  // A batch that Fill writes into; in a device's memory, if this set is one of OnDevice
  // (device_dataset.h).
  virtual Batch MakeBatch(int64_t max_samples) const { return Batch(fields(), max_samples); }
  // The samples in the memory of a device that has its own.  Null where they are not kept there: there is
  // too little of it, or nothing on the device makes batches of them.
  virtual std::unique_ptr<ResidentSamples> KeepOn(const Device& device) const { return nullptr; }

  // SHA-256 over the content of all splits: part of the start-up agreement between ranks.
  virtual std::string ManifestHash() const = 0;
  // Gives that hash with those of the splits, where the set can tell them.
  virtual DataHashes Hashes() const { return {.all = ManifestHash()}; }

  // A set for translation says what it is (sentence_pairs.h); null for others.  It may have more
  // sentences than size() says: those behind are none of this set.
  virtual const SentencePairs* sentence_pairs() const { return nullptr; }
  // A set of images says here what is known of all of them (image_set.h); null for others.
  virtual const ImageSetSpec* image_facts() const { return nullptr; }
  // A set with image_facts takes its mean and deviation from `like`, whose samples have the same shape.
  // REQUIRES: nothing has been read of it yet.
  virtual void Normalise(const ImageSetSpec& like) {}
};

// Another set, for those that differ from it in little.
class WrappedDataset : public Dataset {
 public:
  explicit WrappedDataset(std::shared_ptr<const Dataset> whole) : whole_(std::move(whole)) {}
  // One of its own, which Normalise changes.
  explicit WrappedDataset(std::unique_ptr<Dataset> whole)
      : own_(whole.get()), whole_(std::move(whole)) {}
  const Dataset& whole() const { return *whole_; }

  int64_t size(Split split) const override { return whole_->size(split); }
  std::vector<FieldSpec> fields() const override { return whole_->fields(); }
  int64_t classes() const override { return whole_->classes(); }
  bool has_validation() const override { return whole_->has_validation(); }
  int64_t Terms(Split split, int64_t index) const override { return whole_->Terms(split, index); }
  std::vector<SampleLength> Lengths(Split split) const override { return whole_->Lengths(split); }
  void SampleShapes(Split split, std::span<const int64_t> indices,
                    std::span<Shape> shapes) const override {
    whole_->SampleShapes(split, indices, shapes);
  }
  void Fill(Split split, std::span<const int64_t> indices, uint64_t epoch,
            Batch& batch) const override {
    whole_->Fill(split, indices, epoch, batch);
  }
  std::unique_ptr<ResidentSamples> KeepOn(const Device& device) const override {
    return whole_->KeepOn(device);
  }
  std::string ManifestHash() const override { return Hashes().all; }
  DataHashes Hashes() const override { return whole_->Hashes(); }
  const SentencePairs* sentence_pairs() const override { return whole_->sentence_pairs(); }
  const ImageSetSpec* image_facts() const override { return whole_->image_facts(); }
  void Normalise(const ImageSetSpec& like) override;

 private:
  Dataset* own_ = nullptr;  // the whole, where it may be changed
  std::shared_ptr<const Dataset> whole_;
};

// A file a publisher ships.
struct RemoteFile {
  std::string name;  // "train-images-idx3-ubyte.gz"; may have a folder before it
  std::vector<std::string>
      urls;  // tried in order; none: it is not fetched, and verified where it is
  std::string sha256;
  int64_t bytes = 0;
  // The hash of the content of a .gz, since people keep such files unpacked or pack them anew; "": not known.
  std::string content_sha256 = {};
};

inline constexpr int64_t kKeepAll = std::numeric_limits<int64_t>::max();

// DatasetSource tells data list|fetch|verify, check and list what they need to know without loading anything.
class DatasetSource {
 public:
  virtual ~DatasetSource() = default;
  // Said before Configure: no more samples of each split are used, so that others need not be kept in memory.  What is
  // known of all samples - classes, mean and deviation - stays as it is.
  virtual void KeepFirst(int64_t samples) {}
  virtual void Configure(config::Reader& reader) {}  // keys of `data:` besides name and root
  // Reads the same keys without a look at a file, for a config that is read again, whose source is at hand.
  virtual void ConfigureKeys(config::Reader& reader) { Configure(reader); }
  // Returns the fields of the published set.  Where the lengths of samples differ, a typical one is given, by which
  // models are timed; a loaded set says its longest.
  virtual std::vector<FieldSpec> fields() const = 0;
  virtual int64_t size(Split split) const = 0;  // what the published set has
  virtual int64_t classes() const = 0;
  virtual bool has_validation() const { return false; }
  // The share of its training samples that is its test split, where it has no test samples of its own.
  virtual double test_share() const { return 0; }
  // Its files are the user's, named in the config: what is above is known once it is configured.
  virtual bool is_own() const { return false; }
  virtual std::vector<RemoteFile> files() const { return {}; }
  // Loads it from `folder` (LocateData; empty when files() is).  Throws DataError with file and
  // position.
  virtual std::unique_ptr<Dataset> Load(const std::filesystem::path& folder,
                                        uint64_t seed) const = 0;
};

struct DatasetEntry {
  std::function<std::unique_ptr<DatasetSource>()> make;
  std::string help;
};

using DatasetRegistry = Registry<DatasetEntry>;

// The folders in which data set `name` may lie, in the order in which they are looked at:
// `root`/name where a root is given (the only place then), else $DTRAIN_DATA/name,
// $XDG_CACHE_HOME/dtrain/name and ~/.cache/dtrain/name, each where its variable is set.
std::vector<std::filesystem::path> DataPlaces(const std::string& name, const std::string& root);

// The first of DataPlaces that exists.  Throws DataError listing the places looked at, with
// `dtrain data fetch NAME` as the hint.
std::filesystem::path LocateData(const std::string& name, const std::string& root);

// Names the folder into which `dtrain data fetch` puts data set `name`: `root`/name where a root is given, else
// $XDG_CACHE_HOME/dtrain/name or ~/.cache/dtrain/name.  Throws DataError when none of these is
// known.
std::filesystem::path FetchFolder(const std::string& name, const std::string& root);

// `source` with at most `limit` samples a split, the first ones.  Everything else is the source's.
std::shared_ptr<const DatasetSource> LimitSource(std::shared_ptr<const DatasetSource> source,
                                                 int64_t limit);

// `source` whose training samples are shared out (held_out.cc): the share `validation` of them is its validation
// split, and its test_share(), where there is one, the test split.  Which samples these are depends on their
// number alone, not on a run's seed.  A share that is not 0 gets one sample at least.
std::shared_ptr<const DatasetSource> HoldOut(std::shared_ptr<const DatasetSource> source,
                                             double validation);

}  // namespace dtrain

#define DTRAIN_DATASET(name, Class, help_text)                                                    \
  [[maybe_unused]] static const bool Class##_dataset_registered = ::dtrain::DatasetRegistry::Add( \
      name, {[] { return std::unique_ptr<::dtrain::DatasetSource>(new Class); }, help_text})
