// The data set `image_folder`: the user's own images, with a folder for each class, as in torchvision's ImageFolder.
#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/core/text.h"
#include "framework/data/images/image_folder.h"
#include "framework/data/images/image_keys.h"

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
      const ImageSize first = ReadImageSize(train_->folder / train_->files[0], spec_.orientation);
      spec_.image_shape[1] = first.rows;
      spec_.image_shape[2] = first.columns;
    } else {
      reader.AddError("size", "data.size needs two numbers, rows and columns",
                      "for example size: [32, 32]");
    }
    pixels_.Check(reader, spec_);
  }

  std::vector<FieldSpec> fields() const override { return ImageFields(spec_); }
  int64_t size(Split split) const override {
    const std::optional<ImageList>& list = split == Split::kTrain ? train_ : test_;
    return list ? static_cast<int64_t>(list->files.size()) : 0;
  }
  int64_t classes() const override { return spec_.classes; }
  double test_share() const override { return test_share_; }
  bool is_own() const override { return true; }

  std::unique_ptr<Dataset> Load(const fs::path& folder, uint64_t seed) const override {
    const int threads = DecodingThreads(threads_);
    ImageSetSpec spec = spec_;
    spec.from_image_files = true;
    const ReadOptions options{.threads = threads, .skip_broken = skip_broken_};
    std::vector<std::string> broken;
    LabelledImages train = ReadImages(*train_, spec, options, broken);
    LabelledImages test;
    if (test_) test = ReadImages(*test_, spec, options, broken);
    pixels_.Fill(train, spec);
    auto set = std::make_unique<ImageSet>(spec, std::move(train), std::move(test),
                                          pixels_.augment(), seed);
    set->Note(NotesOf(broken));
    return set;
  }

 private:
  DataNotes NotesOf(const std::vector<std::string>& broken) const {
    DataNotes notes{.files = train_->folder.string()};
    int64_t passed_over = 0;
    std::vector<fs::path> folders;
    for (const std::optional<ImageList>* list : {&train_, &test_}) {
      if (!*list) continue;
      passed_over += (*list)->passed_over;
      for (const fs::path& path : (*list)->left_out) {
        folders.push_back(list == &train_ ? path : (*list)->folder / path);
      }
    }
    if (passed_over > 0) {
      notes.left_out.push_back(
          fmt::format("{} whose names are not .jpg, .jpeg or .png", Counted(passed_over, "file")));
    }
    if (!folders.empty() && !follow_links_) {
      notes.left_out.push_back(
          fmt::format("{} to folders (data.follow_links: true takes what is there): {}",
                      Counted(std::ssize(folders), "symbolic link"), SomeOf(folders)));
    } else if (!folders.empty()) {
      notes.warnings.push_back(fmt::format(
          "{} left out, since links lead to folders that are read already, or that contain {}: {}",
          Counted(std::ssize(folders), "folder"), train_->folder.string(), SomeOf(folders)));
    }
    if (!broken.empty()) {
      notes.left_out.push_back(fmt::format("{} that cannot be decoded: {}",
                                           Counted(std::ssize(broken), "image"), Join(broken)));
    }
    return notes;
  }

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
            .Help("folder of the training images, with a folder for each class in it"));
    keys.test = static_cast<std::string>(
        reader.String("test", "")
            .Help("folder of the test images; \"\": test_share of the training images"));
    test_share_ =
        reader.Number("test_share", 0.1)
            .Above(0)
            .Max(0.5)
            .Help("share of the training images set aside as the test split if test is \"\"");
    if (!keys.test.empty()) test_share_ = 0;
    const std::string colours =
        reader.String("colours", "rgb")
            .OneOf({"rgb", "grey"})
            .Help("colours that the images are converted to: 3 channels, or 1");
    keys.channels = colours == "rgb" ? 3 : 1;
    keys.size = static_cast<std::vector<int64_t>>(
        reader.Ints("size", {})
            .Min(1)
            .Max(16384)
            .Help("rows and columns that every image is resized to; []: all images have the same "
                  "size already"));
    spec_.fit = FitOf(reader.String("fit", "stretch")
                          .OneOf({"stretch", "crop"})
                          .Help("stretch: resize each side by itself; crop: scale until the image "
                                "covers the size, then cut the middle"));
    spec_.orientation =
        OrientationOf(reader.String("orientation", "exif")
                          .OneOf({"exif", "ignore"})
                          .Help("exif: turn images upright if their EXIF orientation marks them as "
                                "rotated or mirrored; ignore: use them as stored"));
    follow_links_ =
        reader.Bool("follow_links", true).Help("take the images behind symbolic links to folders");
    skip_broken_ = reader.Int("skip_broken", 0)
                       .Min(0)
                       .Help(
                           "leave out up to N images that cannot be decoded, and name them; more "
                           "are an error");
    pixels_.Configure(reader);
    threads_ = reader.Int("threads", 0)
                   .Min(0)
                   .Max(1024)
                   .Help("threads that decode images; 0: one for each core of the rank");
    return keys;
  }

  // Lists the images of both folders.  An error in a folder is reported at the config key that names it.
  void Look(config::Reader& reader, const std::string& train, const std::string& test) {
    const auto list = [&](const char* key, const std::string& folder) -> std::optional<ImageList> {
      try {
        ImageList images = ListImages(folder, follow_links_);
        if (train_) images = WithClassesOf(*train_, std::move(images));
        return images;
      } catch (const DataError& error) {
        reader.AddError(key, error.what(), error.hint());
        return std::nullopt;
      }
    };
    train_ = list("train", train);
    if (train_ && !test.empty()) test_ = list("test", test);
  }

  ImageSetSpec spec_;
  PixelKeys pixels_;
  std::optional<ImageList> train_, test_;
  double test_share_ = 0;
  int64_t threads_ = 0;
  int64_t skip_broken_ = 0;
  bool follow_links_ = true;
};

DTRAIN_DATASET("image_folder", ImageFolder,
               "your own images: a folder of JPEG or PNG files for each class");

}  // namespace
}  // namespace dtrain
