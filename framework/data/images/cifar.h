// The binary version of CIFAR-10 and CIFAR-100 (https://www.cs.toronto.edu/~kriz/cifar.html).
//
// A batch file is so many records and nothing else.  A record is one byte for each label, then the
// pixels, one byte each, [channel][row][column].  A file that holds another number of whole
// records, or a label that is no class, is a DataError naming the file, the record and the byte.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "framework/data/dataset.h"
#include "framework/data/images/image_set.h"

namespace dtrain {

struct CifarBatch {
  std::string name;  // "data_batch_1.bin"
  Split split;
  int64_t records = 0;
};

// The facts of one set.
struct CifarFacts {
  std::string name;  // "cifar10"
  ImageSetSpec images;
  std::vector<int64_t> label_classes;  // of each label of a record; the last one is learned
  std::vector<CifarBatch> batches;     // in the order of the samples
  std::string folder;                  // that the published archive unpacks to
  RemoteFile archive;
};

// Loads the batches from the set's folder, from `facts.folder` in it, or from an archive in it: the
// published one, else any other tar archive that holds batches.  Unpacked ones go first.
class CifarSource : public DatasetSource {
 public:
  explicit CifarSource(CifarFacts facts) : facts_(std::move(facts)) {}
  void Configure(config::Reader& reader) override;
  std::vector<FieldSpec> fields() const override { return ImageFields(facts_.images); }
  int64_t size(Split split) const override;
  int64_t classes() const override { return facts_.images.classes; }
  std::vector<RemoteFile> files() const override { return {facts_.archive}; }
  std::unique_ptr<Dataset> Load(const std::filesystem::path& folder, uint64_t seed) const override;

 private:
  CifarFacts facts_;
  CropFlip augment_ = {4, true};
};

}  // namespace dtrain
