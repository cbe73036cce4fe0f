// Dataset gives samples by index.  Shuffling, sharding, batching and prefetch are separate (sampler.h, batches.h), so a
// data set has only a size and a way to fill batches.
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

// The epoch for reads outside of training: samples of any split are not augmented.
inline constexpr uint64_t kNoEpoch = std::numeric_limits<uint64_t>::max();

// Says what a batch has.  A loss is averaged over its terms: the samples if each has one label, or the words of the
// target for translation.  So the gradient of a batch is scaled by 1 / global_terms.
struct BatchCounts {
  int64_t samples = 0;         // rows in use
  int64_t first_position = 0;  // position of row 0 in the global batch
  int64_t global_samples = 0;  // samples of the global batch
  int64_t terms = 0;           // terms of these samples' loss
  int64_t global_terms = 0;    // terms of the global batch's loss
  // The squared deviation by which a target that is a number was divided: it turns the mean squared error of the batch
  // back into that of the labels.  1 for all others.
  double loss_unit = 1;
  uint64_t step = 0;
  uint64_t epoch = 0;
};

// Holds rows of every field, in FieldSpec order, row-major.  They are allocated once for the largest batch and
// refilled.
struct Batch : BatchCounts {
  std::vector<Tensor> fields;  // shape[0] == samples
  std::vector<Buffer> memory;  // holds the fields
  bool on_device = false;      // the memory is a device's

  Batch() = default;
  Batch(const std::vector<FieldSpec>& specs, int64_t max_samples, const Device& device = {});
  void Resize(int64_t new_samples);  // <= max_samples; sets shape[0]
  // Also changes the sample shapes, which must fit in the memory.
  void Resize(int64_t new_samples, std::span<const Shape> sample_shapes);
};

// SampleLength is a sample's length, for batches of samples of similar length: they are sorted by `length`, and equal
// ones by `second`.
struct SampleLength {
  int64_t length = 0;
  int64_t second = 0;
  friend auto operator<=>(const SampleLength&, const SampleLength&) = default;
};

// The samples of a set in a device's memory.  Only one thread at a time may call it.
class ResidentSamples {
 public:
  virtual ~ResidentSamples() = default;
  // Fills a batch on that device, as Dataset::Fill does.
  virtual void Fill(Split split, std::span<const int64_t> indices, uint64_t epoch,
                    Batch& batch) = 0;
};

class SentencePairs;
struct ImageSetSpec;

// Says how the files of a user's own data set were understood.
struct DataNotes {
  std::string files;                  // "houses.csv", "part1.h5 and 1 more": the training data
  std::string read_as;                // "a header (guessed), fields separated by ','", or ""
  std::vector<std::string> left_out;  // "column 'id'", "3 files that are no images"
  std::vector<std::string> warnings;  // each with what to do; without a full stop
  int64_t first_class = 0;            // the smallest label of all files, where labels are classes
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size(Split split) const = 0;
  virtual std::vector<FieldSpec> fields() const = 0;
  virtual int64_t classes() const = 0;
  // A validation split is evaluated during training, so that the test split is used only at the end.
  virtual bool has_validation() const { return false; }
  // True if training samples were set aside as another split (HoldOut), class by class where they have classes.
  virtual bool held_out() const { return false; }

  // Returns how the set's files were understood; null for a published set.
  virtual const DataNotes* notes() const { return nullptr; }
  // Returns the class of each sample of a split, in sample order; empty if samples have none.  Valid while the set is.
  virtual std::span<const uint16_t> ClassOf(Split split) const { return {}; }

  // Returns the terms of one sample's loss (Batch).
  virtual int64_t Terms(Split split, int64_t index) const { return 1; }
  int64_t TermsOf(Split split, std::span<const int64_t> indices) const;  // their sum
  // Returns the length of each sample of a split, by which Sampler groups similar samples into batches; empty if
  // samples have no length.
  virtual std::vector<SampleLength> Lengths(Split split) const { return {}; }
  // Writes the sample shape that a batch of these samples needs, for every field whose samples differ in length; the
  // others keep the shape of fields().  The order of the indices does not matter.
  virtual void SampleShapes(Split split, std::span<const int64_t> indices,
                            std::span<Shape> shapes) const {}

  // Writes sample indices[r] into row r of every field of `batch` (already resized), normalised.  Samples of the
  // training split in an epoch (not kNoEpoch) are also augmented, as a pure function of (seed, epoch, index).
  // Thread-safe.
  virtual void Fill(Split split, std::span<const int64_t> indices, uint64_t epoch,
                    Batch& batch) const = 0;

  // Returns a batch for Fill; it is in a device's memory if the set was made by OnDevice (device_dataset.h).
  virtual Batch MakeBatch(int64_t max_samples) const { return Batch(fields(), max_samples); }
  // Copies the samples to a device's memory.  Returns null if there is too little memory, or if the device cannot make
  // batches of them.
  virtual std::unique_ptr<ResidentSamples> KeepOn(const Device& device) const { return nullptr; }

  // Returns the SHA-256 of the content of all splits; ranks compare it at start-up.
  virtual std::string ManifestHash() const = 0;
  // Returns that hash with those of each split, if the set can compute them.
  virtual DataHashes Hashes() const { return {.all = ManifestHash()}; }

  // Returns a translation set's sentences (sentence_pairs.h); null for others.  It may have more sentences than size();
  // those beyond are not part of this set.
  virtual const SentencePairs* sentence_pairs() const { return nullptr; }
  // Returns the properties shared by all images of an image set (image_set.h); null for others.
  virtual const ImageSetSpec* image_info() const { return nullptr; }
  // Gives targets that are numbers as they are in the files, not less their mean over their deviation: for every loss
  // but mean_squared_error (DecideTargets), and for weights that learned such targets.  REQUIRES: nothing has been read
  // from this set yet.
  virtual void KeepTargets() {}
  // Takes mean and deviation from `like`, whose samples have the same shape, in a set with image_info.  REQUIRES:
  // nothing has been read from this set yet.
  virtual void Normalise(const ImageSetSpec& like) {}
};

// Base class of sets that differ little from another set.
class WrappedDataset : public Dataset {
 public:
  explicit WrappedDataset(std::shared_ptr<const Dataset> whole) : whole_(std::move(whole)) {}
  // Owns the other set, which Normalise may change.
  explicit WrappedDataset(std::unique_ptr<Dataset> whole)
      : own_(whole.get()), whole_(std::move(whole)) {}
  const Dataset& whole() const { return *whole_; }

  int64_t size(Split split) const override { return whole_->size(split); }
  std::vector<FieldSpec> fields() const override { return whole_->fields(); }
  int64_t classes() const override { return whole_->classes(); }
  bool has_validation() const override { return whole_->has_validation(); }
  bool held_out() const override { return whole_->held_out(); }
  const DataNotes* notes() const override { return whole_->notes(); }
  std::span<const uint16_t> ClassOf(Split split) const override { return whole_->ClassOf(split); }
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
  const ImageSetSpec* image_info() const override { return whole_->image_info(); }
  void KeepTargets() override;
  void Normalise(const ImageSetSpec& like) override;

 private:
  Dataset* own_ = nullptr;  // the other set, if Normalise may change it
  std::shared_ptr<const Dataset> whole_;
};

// A file of the data set's publisher.
struct RemoteFile {
  std::string name;  // "train-images-idx3-ubyte.gz"; may have a folder before it
  std::vector<std::string>
      // Tried in order; empty: the file is not fetched, but verified where it is.
      urls;
  std::string sha256;
  int64_t bytes = 0;
  // Holds the hash of a .gz file's content, since users may unpack it or compress it again; "": unknown.
  std::string content_sha256 = {};
};

inline constexpr int64_t kKeepAll = std::numeric_limits<int64_t>::max();

// DatasetSource describes a data set without loading it, for data list|fetch|verify, check and list.
class DatasetSource {
 public:
  virtual ~DatasetSource() = default;
  // Called before Configure: only the first `samples` of each split are used, so that others need not be kept in
  // memory.  Properties of all samples (classes, mean and deviation) do not change.
  virtual void KeepFirst(int64_t samples) {}
  // Reads the keys of `data:` besides name and root.
  virtual void Configure(config::Reader& reader) {}
  // Reads the same keys without opening files, for a config that is read again when its source exists already.
  virtual void ConfigureKeys(config::Reader& reader) { Configure(reader); }
  // Returns the fields of the published set.  If samples differ in length they have a typical one, with which models
  // are timed; those of a loaded set have the longest.
  virtual std::vector<FieldSpec> fields() const = 0;
  virtual int64_t size(Split split) const = 0;  // size in the published set
  virtual int64_t classes() const = 0;
  virtual bool has_validation() const { return false; }
  // Returns the share of the training samples that becomes the test split if the set has no test samples; else 0.
  virtual double test_share() const { return 0; }
  // True if the files are the user's, named in the config: then the properties above are known only after Configure.
  virtual bool is_own() const { return false; }
  // True if Configure has read the files, so that Load takes little time.
  virtual bool is_read() const { return false; }
  virtual std::vector<RemoteFile> files() const { return {}; }
  // Loads the set from `folder` (LocateData; empty if files() is).  Throws DataError with file and position.
  virtual std::unique_ptr<Dataset> Load(const std::filesystem::path& folder,
                                        uint64_t seed) const = 0;
};

struct DatasetEntry {
  std::function<std::unique_ptr<DatasetSource>()> make;
  std::string help;
};

using DatasetRegistry = Registry<DatasetEntry>;

// Returns the folders in which data set `name` is searched, in order: only `root`/name if a root is given, else
// $DTRAIN_DATA/name, $XDG_CACHE_HOME/dtrain/name and ~/.cache/dtrain/name, each if its variable is set.
std::vector<std::filesystem::path> DataPlaces(const std::string& name, const std::string& root);

// Returns the first of DataPlaces that exists.  Throws DataError listing the searched folders, with `dtrain data fetch
// NAME` as the hint.
std::filesystem::path LocateData(const std::string& name, const std::string& root);

// Returns the folder into which `dtrain data fetch` puts data set `name`: `root`/name if a root is given, else
// $XDG_CACHE_HOME/dtrain/name or ~/.cache/dtrain/name.  Throws DataError if none of these is known.
std::filesystem::path FetchFolder(const std::string& name, const std::string& root);

// Returns `source` limited to the first `limit` samples of each split.  All other properties are those of `source`.
std::shared_ptr<const DatasetSource> LimitSource(std::shared_ptr<const DatasetSource> source,
                                                 int64_t limit);

// Returns `source` with its training samples divided (held_out.cc): the share `validation` of them becomes the
// validation split, and its test_share(), if there is one, the test split.  Each class gives the same share of its
// samples, to a sample.  The choice depends only on the samples' number and classes, not on a run's seed.  A share above
// 0 has at least one sample.
std::shared_ptr<const DatasetSource> HoldOut(std::shared_ptr<const DatasetSource> source,
                                             double validation);

}  // namespace dtrain

#define DTRAIN_DATASET(name, Class, help_text)                                                    \
  [[maybe_unused]] static const bool Class##_dataset_registered = ::dtrain::DatasetRegistry::Add( \
      name, {[] { return std::unique_ptr<::dtrain::DatasetSource>(new Class); }, help_text})
