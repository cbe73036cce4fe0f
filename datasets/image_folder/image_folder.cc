// Pictures of one's own: a folder for each class, as torchvision's ImageFolder has them.
#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/core/text.h"
#include "framework/data/images/image_keys.h"
#include "framework/data/images/picture_folder.h"

namespace dtrain {
namespace {
namespace fs = std::filesystem;

class ImageFolder : public DatasetSource {
 public:
  void ConfigureKeys(config::Reader& reader) override { ReadKeys(reader); }
  void Configure(config::Reader& reader) override {
    const Keys keys = ReadKeys(reader);
    if (keys.train.empty()) return;
    Look(reader, keys.train, keys.test);
    if (!train_) return;
    spec_.image_shape = Shape{keys.channels, 0, 0};
    spec_.classes = static_cast<int64_t>(train_->classes.size());
    spec_.class_names = train_->classes;
    const std::vector<int64_t>& size = keys.size;
    if (size.size() == 2) {
      spec_.image_shape[1] = size[0];
      spec_.image_shape[2] = size[1];
    } else if (size.empty()) {
      spec_.fit = Fit::kNone;
      const PictureSize first =
          ReadPictureSize(train_->folder / train_->files[0], spec_.orientation);
      spec_.image_shape[1] = first.rows;
      spec_.image_shape[2] = first.columns;
    } else {
      reader.Mistake("size", "data.size needs two numbers, rows and columns",
                     "for example size: [32, 32]");
    }
    pixels_.Check(reader, spec_);
  }

  std::vector<FieldSpec> fields() const override { return ImageFields(spec_); }
  int64_t size(Split split) const override {
    const std::optional<PictureList>& list = split == Split::kTrain ? train_ : test_;
    return list ? static_cast<int64_t>(list->files.size()) : 0;
  }
  int64_t classes() const override { return spec_.classes; }
  double test_share() const override { return test_share_; }
  bool is_own() const override { return true; }

  std::unique_ptr<Dataset> Load(const fs::path& folder, uint64_t seed) const override {
    const int threads = DecodingThreads(threads_);
    ImageSetSpec spec = spec_;
    spec.from_image_files = true;
    LabelledImages train = ReadPictures(*train_, spec, threads);
    LabelledImages test;
    if (test_) test = ReadPictures(*test_, spec, threads);
    pixels_.Fill(train, spec);
    return std::make_unique<ImageSet>(spec, std::move(train), std::move(test), pixels_.augment(),
                                      seed);
  }

 private:
  struct Keys {
    std::string train, test;
    int64_t channels = 3;
    std::vector<int64_t> size;
  };

  Keys ReadKeys(config::Reader& reader) {
    Keys keys;
    keys.train = static_cast<std::string>(
        reader.String("train", "")
            .Required()
            .Help("folder of the training pictures, with a folder for each class in it"));
    keys.test = static_cast<std::string>(
        reader.String("test", "")
            .Help("folder of the test pictures; \"\": test_share of the training pictures"));
    test_share_ = reader.Number("test_share", 0.1)
                      .Above(0)
                      .Max(0.5)
                      .Help("share of the training pictures that is the test split, without test");
    if (!keys.test.empty()) test_share_ = 0;
    const std::string colours = reader.String("colours", "rgb")
                                    .OneOf({"rgb", "grey"})
                                    .Help("what the pictures are converted to: 3 channels, or 1");
    keys.channels = colours == "rgb" ? 3 : 1;
    keys.size = static_cast<std::vector<int64_t>>(
        reader.Ints("size", {})
            .Min(1)
            .Max(16384)
            .Help("rows and columns of every picture; []: they have one size, as they are"));
    spec_.fit =
        FitOf(reader.String("fit", "stretch")
                  .OneOf({"stretch", "crop"})
                  .Help("how a picture comes to that size: stretch both sides, or crop what "
                        "sticks out behind changing both by one factor"));
    spec_.orientation = OrientationOf(
        reader.String("orientation", "exif")
            .OneOf({"exif", "ignore"})
            .Help("exif: images that a camera marked as lying on their side or mirrored are turned "
                  "upright; ignore: they stay as they are stored"));
    pixels_.Configure(reader);
    threads_ = reader.Int("threads", 0)
                   .Min(0)
                   .Max(1024)
                   .Help("threads that decode pictures; 0: one for each core of the rank");
    return keys;
  }

  // Reports problems of a folder at the key that names it.
  void Look(config::Reader& reader, const std::string& train, const std::string& test) {
    const auto list = [&](const char* key,
                          const std::string& folder) -> std::optional<PictureList> {
      try {
        PictureList pictures = ListPictures(folder);
        if (train_) pictures = WithClassesOf(*train_, std::move(pictures));
        if (pictures.passed_over > 0) {
          log::Info("{}: {} passed over, not .jpg, .jpeg or .png", folder,
                    Counted(pictures.passed_over, "file"));
        }
        return pictures;
      } catch (const DataError& error) {
        reader.Mistake(key, error.what(), error.hint());
        return std::nullopt;
      }
    };
    train_ = list("train", train);
    if (train_ && !test.empty()) test_ = list("test", test);
  }

  ImageSetSpec spec_;
  PixelKeys pixels_;
  std::optional<PictureList> train_, test_;
  double test_share_ = 0;
  int64_t threads_ = 0;
};

DTRAIN_DATASET("image_folder", ImageFolder,
               "your own pictures: a folder of JPEG or PNG for each class");

}  // namespace
}  // namespace dtrain
