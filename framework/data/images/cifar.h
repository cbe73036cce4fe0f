// The binary version of CIFAR-10 and CIFAR-100 (https://www.cs.toronto.edu/~kriz/cifar.html).
//
// A batch file consists of records only.  A record is one byte for each label, then the pixels, one byte each,
// [channel][row][column].  A file that holds another number of whole records, or a label that is no class, is a
// DataError naming the file, the record and the byte.
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

// The properties of one set.
struct CifarInfo {
  std::string name;  // "cifar10"
  ImageSetSpec images;
  // Holds the number of classes of each label of a record; models learn the last label.
  std::vector<int64_t> label_classes;
  std::vector<CifarBatch> batches;  // in sample order
  std::string folder;               // the folder inside the published archive
  RemoteFile archive;
};

// Loads the batches from the set's folder, from `info.folder` in it, or from an archive in it: the published one, else
// any other tar archive that holds batches.  Unpacked batches are preferred.
class CifarSource : public DatasetSource {
 public:
  explicit CifarSource(CifarInfo info) : info_(std::move(info)) {}
  void Configure(config::Reader& reader) override;
  std::vector<FieldSpec> fields() const override { return ImageFields(info_.images); }
  int64_t size(Split split) const override;
  int64_t classes() const override { return info_.images.classes; }
  std::vector<RemoteFile> files() const override { return {info_.archive}; }
  std::unique_ptr<Dataset> Load(const std::filesystem::path& folder, uint64_t seed) const override;

 private:
  CifarInfo info_;
  CropFlip augment_ = {4, true};
};

}  // namespace dtrain
