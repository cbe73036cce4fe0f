// The data set `idx`: the user's own IDX files, with grey images of any size and number of classes
// (framework/data/images/idx.h).
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/data/images/idx.h"
#include "framework/data/images/image_keys.h"

namespace dtrain {
namespace {
namespace fs = std::filesystem;

class OwnIdx : public DatasetSource {
 public:
  void ConfigureKeys(config::Reader& reader) override {
    const auto file = [&reader](const char* key, const char* help) {
      return static_cast<std::string>(reader.String(key, "").Help(help));
    };
    train_.images = reader.String("train_images", "")
                        .Required()
                        .Help("IDX file of the training images, plain or .gz");
    train_.labels = reader.String("train_labels", "").Required().Help("IDX file of their labels");
    test_.images =
        file("test_images", "IDX file of the test images; \"\": test_share of the training images");
    test_.labels = file("test_labels", "IDX file of their labels");
    test_share_ =
        reader.Number("test_share", 0.1)
            .Above(0)
            .Max(0.5)
            .Help(
                "share of the training images set aside as the test split if test_images is \"\"");
    spec_.class_names = static_cast<std::vector<std::string>>(
        reader.Strings("class_names", {})
            .Help("name of each class, in the order of the labels; []: classes have numbers only, "
                  "from 0 to the largest label"));
    pixels_.Configure(reader);
  }
  void Configure(config::Reader& reader) override {
    ConfigureKeys(reader);
    if (train_.images.empty() || train_.labels.empty()) return;
    if (test_.images.empty() != test_.labels.empty()) {
      reader.AddError(test_.images.empty() ? "test_labels" : "test_images",
                      "test images and test labels go together", "give both, or none",
                      {"test_images", "test_labels"});
      return;
    }
    if (!test_.images.empty()) test_share_ = 0;
    try {
      Look();
    } catch (const DataError& error) {
      reader.AddError("train_images", error.what(), error.hint());
      return;
    }
    pixels_.Check(reader, spec_);
  }

  std::vector<FieldSpec> fields() const override { return ImageFields(spec_); }
  int64_t size(Split split) const override {
    return split == Split::kTrain ? train_.size : split == Split::kTest ? test_.size : 0;
  }
  int64_t classes() const override { return spec_.classes; }
  double test_share() const override { return test_share_; }
  bool is_own() const override { return true; }

  std::unique_ptr<Dataset> Load(const fs::path& folder, uint64_t seed) const override {
    ImageSetSpec spec = spec_;
    LabelledImages train = ReadLabelledIdx(train_.images, train_.labels, spec);
    LabelledImages test;
    if (test_.size > 0) test = ReadLabelledIdx(test_.images, test_.labels, spec);
    pixels_.Fill(train, spec);
    DataNotes notes{.files = train_.images, .first_class = std::ranges::min(train.labels)};
    for (const uint16_t label : test.labels) {
      notes.first_class = std::min<int64_t>(notes.first_class, label);
    }
    auto set = std::make_unique<ImageSet>(spec, std::move(train), std::move(test),
                                          pixels_.augment(), seed);
    set->Note(std::move(notes));
    return set;
  }

 private:
  struct Files {
    std::string images, labels;
    int64_t size = 0;
  };

  // Reads the sizes and the number of classes from the files' headers and the labels.
  void Look() {
    const IdxHeader header = ReadIdxHeader(train_.images);
    spec_.image_shape = Shape{1, header.rows, header.columns};
    const auto names = static_cast<int64_t>(spec_.class_names.size());
    const std::vector<uint8_t> labels = ReadIdxLabels(train_.labels, names > 0 ? names : 256);
    train_.size = static_cast<int64_t>(labels.size());
    spec_.classes = names;
    if (names == 0) spec_.classes = labels.empty() ? 0 : *std::ranges::max_element(labels) + 1;
    if (!test_.images.empty()) test_.size = ReadIdxHeader(test_.images).count;
  }

  ImageSetSpec spec_;
  PixelKeys pixels_;
  Files train_, test_;
  double test_share_ = 0;
};

DTRAIN_DATASET("idx", OwnIdx, "your own grey images and labels in IDX files (MNIST's format)");

}  // namespace
}  // namespace dtrain
