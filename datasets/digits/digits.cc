// The data set `digits`: ten classes of drawn digits, 28 x 28 grey, which are generated without files or network.
//
// The samples depend on `data.seed` only, not on the seed of the run, so that runs with different seeds are evaluated
// on the same test set.  Loading draws all samples once.
#include <memory>

#include "datasets/digits/render.h"
#include "framework/data/images/image_set.h"

namespace dtrain {
namespace {

// Mean and deviation are those of the training pixels.
const ImageSetSpec kImages = {Shape{1, digits::kSide, digits::kSide}, 10, 0.1329f, 0.2632f};

LabelledImages DrawSplit(uint64_t seed, Split split, int64_t size) {
  LabelledImages drawn;
  drawn.images.resize(static_cast<size_t>(size) * digits::kPixels);
  drawn.labels.resize(static_cast<size_t>(size));
  for (int64_t i = 0; i < size; ++i) {
    drawn.labels[i] = digits::Draw(seed, split, i, &drawn.images[i * digits::kPixels]);
  }
  return drawn;
}

class Digits : public DatasetSource {
 public:
  void Configure(config::Reader& reader) override {
    seed_ = reader.Int("seed", seed_).Min(0).Help("random seed of the generated digits");
    train_size_ = reader.Int("train_samples", train_size_)
                      .Min(1)
                      .Max(1e6)
                      .Help("number of generated training digits");
    test_size_ = reader.Int("test_samples", test_size_)
                     .Min(1)
                     .Max(1e6)
                     .Help("number of generated test digits");
  }
  std::vector<FieldSpec> fields() const override { return ImageFields(kImages); }
  int64_t size(Split split) const override {
    return split == Split::kTrain ? train_size_ : test_size_;
  }
  int64_t classes() const override { return kImages.classes; }
  std::unique_ptr<Dataset> Load(const std::filesystem::path& folder, uint64_t seed) const override {
    const auto drawn = [this](Split split) { return DrawSplit(seed_, split, size(split)); };
    return std::make_unique<ImageSet>(kImages, drawn(Split::kTrain), drawn(Split::kTest));
  }

 private:
  int64_t seed_ = 1;
  int64_t train_size_ = 12000;
  int64_t test_size_ = 2000;
};

DTRAIN_DATASET("digits", Digits, "drawn digits, 28 x 28 grey, made on the spot");

}  // namespace
}  // namespace dtrain
