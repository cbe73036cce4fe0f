// IDX files: the format of MNIST and of the sets made to its pattern (Fashion-MNIST, EMNIST,
// KMNIST).
//
// Big-endian 32-bit integers, then one byte a value (http://yann.lecun.com/exdb/mnist, "FILE
// FORMATS FOR THE MNIST DATABASE"):
//   images  2051, count, rows, columns, then count x rows x columns pixels
//   labels  2049, count, then count labels
// Plain or .gz.  A file must hold exactly what its header says; every other state is a DataError
// that names the file and the position.
//
// A new set is one folder with an IdxSource and its facts (datasets/mnist).
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

// Without the content.
IdxHeader ReadIdxHeader(const std::filesystem::path& path);

// Refuses sizes the file cannot hold, and more than 64 GB, before allocating anything.
IdxImages ReadIdxImages(const std::filesystem::path& path);

// Labels below `classes`.
std::vector<uint8_t> ReadIdxLabels(const std::filesystem::path& path, int64_t classes);

// Both, as many of the one as of the other and at least one, of the spec's size and classes.
LabelledImages ReadLabelledIdx(const std::filesystem::path& images,
                               const std::filesystem::path& labels, const ImageSetSpec& spec);

// The facts of one set.
struct IdxFacts {
  std::string name;
  ImageSetSpec images;
  int64_t train_size = 0;
  int64_t test_size = 0;
  std::vector<RemoteFile> files;
};

// Loads {train,t10k}-images-idx3-ubyte and {train,t10k}-labels-idx1-ubyte, each plain or with .gz
// after it, "." for "-" before idx where somebody unpacked them so.
class IdxSource : public DatasetSource {
 public:
  explicit IdxSource(IdxFacts facts) : facts_(std::move(facts)) {}
  std::vector<FieldSpec> fields() const override { return ImageFields(facts_.images); }
  int64_t size(Split split) const override {
    return split == Split::kTrain ? facts_.train_size : facts_.test_size;
  }
  int64_t classes() const override { return facts_.images.classes; }
  std::vector<RemoteFile> files() const override { return facts_.files; }
  std::unique_ptr<Dataset> Load(const std::filesystem::path& folder, uint64_t seed) const override;

 private:
  LabelledImages LoadSplit(const std::filesystem::path& folder, const std::string& prefix) const;
  IdxFacts facts_;
};

}  // namespace dtrain
