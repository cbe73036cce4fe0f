// TableSource: what npy, hdf5 and csv share as data sets - the keys of normalisation, classes and shares, and what
// the samples of a table become: an ImageSet, where they are images of bytes with classes, else a NumberSet.
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
  // A file that is not there is a mistake of the config; one whose content is wrong a DataError.
  void Configure(config::Reader& reader) final;
  void ConfigureKeys(config::Reader& reader) final { ReadAllKeys(reader); }
  void KeepFirst(int64_t samples) final { keep_ = samples; }
  std::vector<FieldSpec> fields() const override { return ImageFields(spec_); }
  int64_t size(Split split) const override;
  int64_t classes() const override { return spec_.classes; }
  double test_share() const override { return test_share_; }
  bool is_own() const override { return true; }
  std::unique_ptr<Dataset> Load(const std::filesystem::path& folder, uint64_t seed) const override;

 protected:
  // `images`: samples may be images of bytes, which are cropped and mirrored.  `whole_are_classes`: IsRegression.
  TableSource(bool images, bool whole_are_classes)
      : images_(images), whole_are_classes_(whole_are_classes) {}

  // Keys and paths of files, those of the test split second.  No path: it was not given.
  struct Files {
    std::vector<std::pair<std::string, std::string>> train, test;  // {key, path}
  };
  virtual Files ReadKeys(config::Reader& reader) = 0;
  // Whose labels' words are `words`, where there are some.
  virtual Table Open(Split split, const std::vector<std::string>& words) = 0;

  int64_t keep() const { return keep_; }  // samples of a split whose values are kept
  // Whether mean and deviation are those of all samples, so that the values of all are looked at.
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
};

}  // namespace dtrain
