// TableSource is the base class of the data sets npy, hdf5 and csv: it reads the keys of normalisation, classes and
// shares, and makes an ImageSet of a table of byte images with classes, else a NumberSet.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/data/dataset.h"
#include "framework/data/images/image_keys.h"
#include "framework/data/tables/number_set.h"
#include "framework/data/tables/table.h"

namespace dtrain {

class TableSource : public DatasetSource {
 public:
  // A missing file is a config error; one with wrong content a DataError.
  void Configure(config::Reader& reader) final;
  void ConfigureKeys(config::Reader& reader) final { ReadAllKeys(reader); }
  void KeepFirst(int64_t samples) final { keep_ = samples; }
  std::vector<FieldSpec> fields() const override { return ImageFields(spec_); }
  int64_t size(Split split) const override;
  int64_t classes() const override { return spec_.classes; }
  double test_share() const override { return test_share_; }
  bool is_own() const override { return true; }
  bool is_read() const override { return train_.has_value(); }
  std::unique_ptr<Dataset> Load(const std::filesystem::path& folder, uint64_t seed) const override;

 protected:
  // `images`: samples may be byte images, which can be cropped and mirrored.  `whole_are_classes`: see IsRegression.
  TableSource(bool images, bool whole_are_classes)
      : images_(images), whole_are_classes_(whole_are_classes) {}

  // Holds keys and paths of the files of each split; empty if not given.
  struct Files {
    std::vector<std::pair<std::string, std::string>> train, test;  // {key, path}
  };
  virtual Files ReadKeys(config::Reader& reader) = 0;
  // Opens a split; if `words` is not empty, it lists the classes of text labels.
  virtual Table Open(Split split, const std::vector<std::string>& words) = 0;

  int64_t keep() const { return keep_; }  // samples of a split to keep
  // True if mean or deviation is measured on all samples, so that all values must be read.
  bool measures() const { return pixels_.measures(); }

 private:
  Files ReadAllKeys(config::Reader& reader);
  void Settle(config::Reader& reader);
  std::vector<uint16_t> KeptClassesOf(const Table& table) const;
  std::unique_ptr<Dataset> LoadImages(uint64_t seed) const;
  std::unique_ptr<Dataset> LoadNumbers() const;
  LabelledNumbers NumbersOf(const Table& table) const;

  const bool images_, whole_are_classes_;
  int64_t keep_ = kKeepAll;
  Task task_ = Task::kAuto;
  ImageSetSpec spec_;
  PixelKeys pixels_;
  std::optional<Table> train_, test_;
  double test_share_ = 0;
  DataNotes notes_;
};

}  // namespace dtrain
