// Reads IDX files: the format of MNIST and of sets modelled on it (Fashion-MNIST, EMNIST, KMNIST).
//
// Big-endian 32-bit integers, then one byte a value (http://yann.lecun.com/exdb/mnist, "FILE
// FORMATS FOR THE MNIST DATABASE"):
//   images  2051, count, rows, columns, then count x rows x columns pixels
//   labels  2049, count, then count labels
// Plain or .gz.  A file must hold exactly what its header says; anything else is a DataError that names the file and
// the position.
//
// A new set is one folder with an IdxSource and its properties (datasets/mnist).
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "framework/data/dataset.h"
#include "framework/data/images/image_set.h"

namespace dtrain {

struct IdxHeader {
  int64_t count = 0;
  int64_t rows = 0;
  int64_t columns = 0;
};

struct IdxImages : IdxHeader {
  std::vector<uint8_t> pixels;  // [count, rows, columns]
};

// Reads only the header.
IdxHeader ReadIdxHeader(const std::filesystem::path& path);

// Throws for sizes that the file cannot hold, and for more than 64 GB, before it allocates memory.
IdxImages ReadIdxImages(const std::filesystem::path& path);

// Reads labels; throws DataError for one that is not below `classes`.
std::vector<uint8_t> ReadIdxLabels(const std::filesystem::path& path, int64_t classes);

// Reads both; there must be as many images as labels, at least one, of the spec's size and classes.
LabelledImages ReadLabelledIdx(const std::filesystem::path& images,
                               const std::filesystem::path& labels, const ImageSetSpec& spec);

// The properties of one set.
struct IdxInfo {
  std::string name;
  ImageSetSpec images;
  int64_t train_size = 0;
  int64_t test_size = 0;
  std::vector<RemoteFile> files;
};

// Loads {train,t10k}-images-idx3-ubyte and {train,t10k}-labels-idx1-ubyte, each plain or as .gz, also with "." for "-"
// before idx, as some programs unpack them.
class IdxSource : public DatasetSource {
 public:
  explicit IdxSource(IdxInfo info) : info_(std::move(info)) {}
  std::vector<FieldSpec> fields() const override { return ImageFields(info_.images); }
  int64_t size(Split split) const override {
    return split == Split::kTrain ? info_.train_size : info_.test_size;
  }
  int64_t classes() const override { return info_.images.classes; }
  std::vector<RemoteFile> files() const override { return info_.files; }
  std::unique_ptr<Dataset> Load(const std::filesystem::path& folder, uint64_t seed) const override;

 private:
  LabelledImages LoadSplit(const std::filesystem::path& folder, const std::string& prefix) const;
  IdxInfo info_;
};

}  // namespace dtrain
