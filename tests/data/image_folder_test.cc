// Tests the data set image_folder: the user's own images, one folder per class.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <numeric>

#include "framework/core/error.h"
#include "framework/data/images/image_keys.h"
#include "framework/data/images/image_set.h"
#include "framework/device/cpu/threads.h"
#include "tests/data/image_files.h"
#include "tests/data/table_files.h"
#include "tests/data/temp_folder.h"
#include "tests/support/data_source.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Grey(uint8_t value, int64_t side = 4) {
  return PngOf(std::vector<uint8_t>(static_cast<size_t>(side * side), value), side, side,
               PNG_FORMAT_GRAY);
}

class ImageFolder : public testing::Test {
 protected:
  std::string Train() const { return "train: " + (folder_ / "train").string(); }
  std::string Test() const { return ", test: " + (folder_ / "test").string(); }
  TempFolder folder_;
};

TEST_F(ImageFolder, ClassesAreFoldersAndImagesAreInTheOrderOfTheirPaths) {
  folder_.Write("train/dog/b.png", Grey(40));
  folder_.Write("train/dog/a/z.PNG", Grey(30));
  folder_.Write("train/cat/2.png", Grey(20));
  folder_.Write("train/cat/10.png", Grey(10));
  folder_.Write("train/cat/notes.txt", "no image");
  folder_.Write("train/cat/.hidden.png", "no image either");
  folder_.Write("train/.cache/x.png", "nor this");
  folder_.Write("test/dog/1.png", Grey(50));
  const auto source = SourceOf("image_folder", Train() + Test() + ", colours: grey");
  EXPECT_EQ(source->classes(), 2);
  EXPECT_EQ(source->size(Split::kTrain), 4);
  EXPECT_EQ(source->size(Split::kTest), 1);
  const auto set = source->Load("", 1);
  ASSERT_NE(set->image_info(), nullptr);
  EXPECT_THAT(set->image_info()->class_names, ElementsAre("cat", "dog"));
  const auto& images = static_cast<const ImageSet&>(*set);
  EXPECT_THAT(images.images(Split::kTrain).labels, ElementsAre(0, 0, 1, 1));
  EXPECT_EQ(images.images(Split::kTrain).images[0], 10);
  EXPECT_EQ(images.images(Split::kTrain).images[2 * 16], 30);
  // A test folder need not have all classes; its labels are numbered as in the training split.
  EXPECT_THAT(images.images(Split::kTest).labels, ElementsAre(1));
}

TEST_F(ImageFolder, MeanAndDeviationAreMeasuredOnTheTrainingImages) {
  double sum = 0, squares = 0;
  for (int i = 0; i < 5; ++i) {
    const auto pixels = NoisyPixels(6, 7, 1, static_cast<uint64_t>(i));
    for (const uint8_t p : pixels) sum += p / 255.0, squares += p / 255.0 * (p / 255.0);
    folder_.Write("train/a/" + std::to_string(i) + ".png", PngOf(pixels, 6, 7, PNG_FORMAT_GRAY));
  }
  folder_.Write("test/a/0.png", PngOf(NoisyPixels(6, 7, 1, 9), 6, 7, PNG_FORMAT_GRAY));
  const double mean = sum / 210, deviation = std::sqrt(squares / 210 - mean * mean);
  const auto set = SourceOf("image_folder", Train() + Test() + ", colours: grey")->Load("", 1);
  EXPECT_NEAR(set->image_info()->mean[0], mean, 1e-6);
  EXPECT_NEAR(set->image_info()->deviation[0], deviation, 1e-6);
  const auto given =
      SourceOf("image_folder", Train() + Test() + ", mean: [0.5], deviation: [0.1, 0.2, 0.4]")
          ->Load("", 1);
  EXPECT_EQ(given->image_info()->mean[2], 0.5f);
  EXPECT_EQ(given->image_info()->deviation[2], 0.4f);
}

TEST_F(ImageFolder, BrokenImagesAreNamedAndCounted) {
  for (int i = 0; i < 13; ++i) {
    folder_.Write("train/a/broken" + std::to_string(10 + i) + ".png", Grey(1).substr(0, 50));
  }
  folder_.Write("train/a/sound.png", Grey(1));
  const auto source = SourceOf("image_folder", Train() + ", size: [4, 4]");
  EXPECT_THAT(MessageOf<DataError>([&] { source->Load("", 1); }),
              AllOf(HasSubstr("13 of 14 images in " + (folder_ / "train").string()),
                    HasSubstr("broken10.png"), HasSubstr("broken22.png"),
                    HasSubstr("data.skip_broken: 13"), Not(HasSubstr("sound.png"))));
}

TEST_F(ImageFolder, BrokenImagesMayBeLeftOut) {
  folder_.Write("train/a/1.png", Grey(10));
  folder_.Write("train/a/2.png", Grey(20).substr(0, 50));
  folder_.Write("train/b/1.png", "nothing");
  folder_.Write("train/b/2.png", Grey(40));
  const std::string keys = Train() + ", size: [4, 4], mean: [0], deviation: [1], skip_broken: ";
  const auto set = SourceOf("image_folder", keys + "2")->Load("", 1);
  ASSERT_EQ(set->size(Split::kTrain), 2);
  EXPECT_THAT(set->ClassOf(Split::kTrain), ElementsAre(0, 1));
  EXPECT_FLOAT_EQ(SampleOf(*set, Split::kTrain, 1).first[0], 40 / 255.0f);
  EXPECT_THAT(set->notes()->left_out,
              ElementsAre("2 images that cannot be decoded: a/2.png, b/1.png"));
  EXPECT_THAT(MessageOf<DataError>([&] { SourceOf("image_folder", keys + "1")->Load("", 1); }),
              AllOf(HasSubstr("2 of 4 images"), HasSubstr("a/2.png"), HasSubstr("b/1.png")));
}

TEST_F(ImageFolder, LinksToFoldersAreFollowedUnlessTheyLeadBack) {
  namespace fs = std::filesystem;
  folder_.Write("train/a/1.png", Grey(10));
  folder_.Write("train/b/1.png", Grey(20));
  folder_.Write("other/more/2.png", Grey(30));
  fs::create_directory_symlink(folder_ / "other", folder_ / "train/a/linked");
  fs::create_directory_symlink(folder_ / "train/a", folder_ / "train/a/itself");
  fs::create_directory_symlink(folder_ / "train", folder_ / "train/b/all");
  const auto set = SourceOf("image_folder", Train() + ", size: [4, 4]")->Load("", 1);
  EXPECT_THAT(set->ClassOf(Split::kTrain), ElementsAre(0, 0, 1));
  EXPECT_THAT(set->notes()->warnings,
              ElementsAre(AllOf(HasSubstr("2 folders left out"), HasSubstr(": a/itself, b/all"))));
  const auto without =
      SourceOf("image_folder", Train() + ", size: [4, 4], follow_links: false")->Load("", 1);
  EXPECT_THAT(without->ClassOf(Split::kTrain), ElementsAre(0, 1));
  EXPECT_THAT(without->notes()->left_out,
              ElementsAre(AllOf(HasSubstr("3 symbolic links to folders"),
                                HasSubstr("a/itself, a/linked"))));
}

// The folder's own path is taken, wherever the link is; of two links the first by name.
TEST_F(ImageFolder, AFolderThatIsReachedTwiceIsReadOnce) {
  namespace fs = std::filesystem;
  folder_.Write("train/a/1.png", Grey(10));
  folder_.Write("train/b/1.png", Grey(20));
  folder_.Write("train/b/more/2.png", Grey(30));
  folder_.Write("other/3.png", Grey(40));
  fs::create_directory_symlink(folder_ / "train/b/more", folder_ / "train/a/twice");
  fs::create_directory_symlink(folder_ / "other", folder_ / "train/b/second");
  fs::create_directory_symlink(folder_ / "other", folder_ / "train/a/first");
  const auto set = SourceOf("image_folder", Train() + ", size: [4, 4]")->Load("", 1);
  EXPECT_THAT(set->ClassOf(Split::kTrain), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(set->notes()->warnings, ElementsAre(HasSubstr(": a/twice, b/second")));
  fs::create_directory_symlink(folder_ / "other", folder_ / "train/c");
  EXPECT_THAT(MessageOf<ConfigError>([&] { SourceOf("image_folder", Train()); }),
              AllOf(HasSubstr("1 of 3 classes has no image (.jpg, .jpeg, .png): c"),
                    HasSubstr("not read, as links: a/twice, b/second, c")));
}

TEST_F(ImageFolder, ALinkToAFolderAboveIsNotFollowed) {
  namespace fs = std::filesystem;
  folder_.Write("data/train/a/1.png", Grey(10));
  folder_.Write("data/other/2.png", Grey(20));
  fs::create_directory_symlink(folder_.path(), folder_ / "data/train/a/up");
  fs::create_directory_symlink(folder_ / "data", folder_ / "data/train/a/upper");
  fs::create_directory_symlink(folder_ / "data/train", folder_ / "train");
  for (const char* train : {"data/train", "train"}) {
    const auto set = SourceOf("image_folder", "train: " + (folder_ / train).string())->Load("", 1);
    EXPECT_THAT(set->ClassOf(Split::kTrain), ElementsAre(0));
    EXPECT_THAT(set->notes()->warnings, ElementsAre(HasSubstr(": a/up, a/upper")));
  }
}

TEST_F(ImageFolder, BothSplitsTogetherMaySkipSoManyBrokenImages) {
  for (const char* split : {"train", "test"}) {
    folder_.Write(std::string(split) + "/a/1.png", Grey(10));
    folder_.Write(std::string(split) + "/a/2.png", "broken");
  }
  const std::string keys = Train() + Test() + ", size: [4, 4], skip_broken: ";
  EXPECT_THAT(SourceOf("image_folder", keys + "2")->Load("", 1)->notes()->left_out,
              ElementsAre("2 images that cannot be decoded: a/2.png, a/2.png"));
  EXPECT_THAT(MessageOf<DataError>([&] { SourceOf("image_folder", keys + "1")->Load("", 1); }),
              AllOf(HasSubstr("1 of 2 images"), HasSubstr("data.skip_broken: 2")));
}

// A line feed in a name would begin a line that looks like the program's own.
TEST_F(ImageFolder, NamesOfFilesAndClassesStayOnTheirLine) {
  folder_.Write("train/a/x\ninfo all is well.png", "broken");
  EXPECT_THAT(MessageOf<DataError>(
                  [&] { SourceOf("image_folder", Train() + ", size: [4, 4]")->Load("", 1); }),
              HasSubstr("x\\u000ainfo all is well.png: "));
  EXPECT_THAT(MessageOf<DataError>([&] { SourceOf("image_folder", Train()); }),
              HasSubstr("x\\u000ainfo"));
  folder_.Write("train/a/x\ninfo all is well.png", Grey(1));
  std::filesystem::create_directories(folder_ / "train/c\nd");
  EXPECT_THAT(WhatOf<ConfigError>([&] { SourceOf("image_folder", Train()); }),
              HasSubstr("1 of 2 classes has no image (.jpg, .jpeg, .png): c\\u000ad"));
  std::filesystem::remove(folder_ / "train/c\nd");
  folder_.Write("test/g\nu/1.png", Grey(1));
  EXPECT_THAT(WhatOf<ConfigError>([&] { SourceOf("image_folder", Train() + Test()); }),
              HasSubstr("has a class 'g\\u000au' that"));
}

TEST_F(ImageFolder, OtherSizesNeedASize) {
  folder_.Write("train/a/1.png", Grey(1, 4));
  folder_.Write("train/a/2.png", Grey(1, 5));
  EXPECT_THAT(MessageOf<DataError>([&] { SourceOf("image_folder", Train())->Load("", 1); }),
              AllOf(HasSubstr("1 of 2 images"), HasSubstr("2.png: an image of 5 x 5")));
  const auto set = SourceOf("image_folder", Train() + ", size: [3, 6]")->Load("", 1);
  EXPECT_EQ(set->fields()[0].sample_shape, (Shape{3, 3, 6}));
}

TEST_F(ImageFolder, ImagesAreTurnedByTheirOrientationAndCounted) {
  const std::string jpeg = JpegOf(SmoothPixels(8, 16, 3), 8, 16, 3);
  for (const char* name : {"1", "2", "3"}) {
    folder_.Write(std::string("train/a/") + name + ".jpg", WithExif(jpeg, 6));
  }
  folder_.Write("train/a/4.png", PngOf(SmoothPixels(16, 8, 3), 16, 8, PNG_FORMAT_RGB));
  testing::internal::CaptureStderr();
  const auto set = SourceOf("image_folder", Train())->Load("", 1);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr((folder_ / "train").string() + ": 3 images turned upright by EXIF"));
  EXPECT_EQ(set->fields()[0].sample_shape, (Shape{3, 16, 8}));
  EXPECT_EQ(set->image_info()->orientation, Orientation::kExif);
  EXPECT_THAT(MessageOf<DataError>([&] {
                SourceOf("image_folder", Train() + ", orientation: ignore")->Load("", 1);
              }),
              HasSubstr("4.png: an image of 16 x 8 pixels among those of 8 x 16"));
  std::filesystem::remove(folder_ / "train/a/4.png");
  testing::internal::CaptureStderr();
  const auto stored = SourceOf("image_folder", Train() + ", orientation: ignore")->Load("", 1);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), Not(HasSubstr("EXIF")));
  EXPECT_EQ(stored->fields()[0].sample_shape, (Shape{3, 8, 16}));
  EXPECT_EQ(stored->image_info()->orientation, Orientation::kIgnore);
}

TEST_F(ImageFolder, ErrorsAreReportedWhereTheConfigNamesTheFolder) {
  const auto error = [&](const std::string& keys) {
    return WhatOf<ConfigError>([&] { SourceOf("image_folder", keys); });
  };
  EXPECT_THAT(error(Train()), AllOf(HasSubstr("test.yaml:1:"), HasSubstr("there is no folder")));
  std::filesystem::create_directories(folder_ / "train");
  EXPECT_THAT(error(Train()), HasSubstr("has no folder in it"));
  folder_.Write("train/cat/1.png", Grey(1));
  folder_.Write("train/dog/readme.txt", "");
  std::filesystem::create_directories(folder_ / "train/emu");
  EXPECT_THAT(error(Train()), HasSubstr("2 of 3 classes have no image (.jpg, .jpeg, .png): "
                                        "dog, emu"));
  folder_.Write("train/dog/1.png", Grey(1));
  folder_.Write("train/emu/1.png", Grey(1));
  folder_.Write("test/gnu/1.png", Grey(1));
  EXPECT_THAT(error(Train() + Test()), HasSubstr("has a class 'gnu' that"));
  EXPECT_THAT(error(Train() + ", size: [3]"),
              HasSubstr("size needs two numbers, rows and columns"));
  EXPECT_THAT(error(Train() + ", mean: [1, 2]"),
              HasSubstr("data.mean has 2 numbers, a sample has 3 channels"));
}

// The result of a whole pass does not depend on the number of threads.
TEST_F(ImageFolder, AnyNumberOfThreadsReadsTheSame) {
  for (int i = 0; i < 40; ++i) {
    folder_.Write("train/" + std::to_string(i % 3) + "/" + std::to_string(i) + ".png",
                  PngOf(NoisyPixels(8, 8, 3, static_cast<uint64_t>(i)), 8, 8, PNG_FORMAT_RGB));
  }
  const std::string one =
      SourceOf("image_folder", Train() + ", threads: 1")->Load("", 1)->ManifestHash();
  EXPECT_EQ(SourceOf("image_folder", Train() + ", threads: 5")->Load("", 1)->ManifestHash(), one);
  EXPECT_NE(SourceOf("image_folder", Train() + ", threads: 5, colours: grey")
                ->Load("", 1)
                ->ManifestHash(),
            one);
}

TEST(DecodingThreads, AreThoseThatAContainerMayUse) {
  EXPECT_EQ(DecodingThreads(5), 5);
  EXPECT_EQ(DecodingThreads(0), static_cast<int>(UsableCpus().size()));
}

TEST(ImageInfo, IsTheSameWhenItIsReadAgain) {
  ImageSetSpec spec{Shape{3, 20, 30}, 2, {0.1f, 0.25f, 1e-7f}, {0.3f, 0.2f, 0.1f}};
  spec.class_names = {"Stra\u00dfe \"x\"", ""};
  spec.fit = Fit::kCrop;
  const ImageSetSpec again = ImageSetSpecFromText(ToText(spec), "there");
  EXPECT_EQ(again.image_shape, spec.image_shape);
  EXPECT_EQ(again.classes, 2);
  EXPECT_EQ(again.mean.values(), spec.mean.values());
  EXPECT_EQ(again.deviation.values(), spec.deviation.values());
  EXPECT_EQ(again.class_names, spec.class_names);
  EXPECT_EQ(again.fit, Fit::kCrop);
  EXPECT_EQ(again.orientation, Orientation::kExif);
  EXPECT_EQ(ToText(again), ToText(spec));
}

TEST(ImageInfo, OfATableNameItsColumns) {
  ImageSetSpec spec{Shape{2}, 0};
  spec.numbers = true;
  EXPECT_THAT(ToText(spec), testing::Not(HasSubstr("column"))) << "as older programs wrote it";
  spec.columns = {"a", "b \"c\""};
  spec.label_column = "y";
  const ImageSetSpec again = ImageSetSpecFromText(ToText(spec), "there");
  EXPECT_EQ(again.columns, spec.columns);
  EXPECT_EQ(again.label_column, "y");
  spec.columns = {"a"};
  EXPECT_THAT(WhatOf<DataError>([&] { ImageSetSpecFromText(ToText(spec), "x"); }),
              HasSubstr("x: columns: 1 names for samples of [2]"));
}

// Programs older than the key `orientation` turned no image, so their models still read images as
// they are stored.
TEST(ImageInfo, OfAnOlderProgramAreOfImagesAsTheyAreStored) {
  const ImageSetSpec spec = ImageSetSpecFromText(
      R"({"shape":[1,2,2],"classes":2,"mean":[0],"deviation":[1],"class_names":[],"fit":"none"})",
      "x");
  EXPECT_EQ(spec.orientation, Orientation::kIgnore);
  EXPECT_EQ(ImageSetSpecFromText(ToText(spec), "x").orientation, Orientation::kIgnore);
}

TEST(ImageInfo, OthersAreRefused) {
  const std::string sound =
      R"({"shape":[1,2,2],"classes":2,"mean":[0],"deviation":[1],"class_names":[],"fit":"none"})";
  EXPECT_NO_THROW(ImageSetSpecFromText(sound, "x"));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = sound;
    text.replace(text.find(from), from.size(), to);
    return WhatOf<DataError>([&] { ImageSetSpecFromText(text, "x"); });
  };
  EXPECT_THAT(with("[1,2,2]", "[1,2]"), HasSubstr("x: shape"));
  EXPECT_THAT(with("[1,2,2]", "[1,0,2]"), HasSubstr("x: shape"));
  EXPECT_THAT(with("[1,2,2]", "[1,100000,100000]"), HasSubstr("x: shape"));
  EXPECT_THAT(with("[1,2,2]", "[1,-1,2]"), HasSubstr("x: shape"));
  EXPECT_THAT(with("\"classes\":2", "\"classes\":0"), HasSubstr("x: classes"));
  EXPECT_THAT(with("\"classes\":2", "\"classes\":70000"), HasSubstr("x: classes"));
  EXPECT_THAT(with("\"mean\":[0]", "\"mean\":[0,0]"), HasSubstr("x: mean"));
  EXPECT_THAT(with("\"deviation\":[1]", "\"deviation\":[0]"), HasSubstr("x: deviation"));
  EXPECT_THAT(with("\"deviation\":[1]", "\"deviation\":[1e-300]"), HasSubstr("x: deviation"))
      << "as a float it is 0";
  EXPECT_THAT(with("\"class_names\":[]", "\"class_names\":[\"a\"]"), HasSubstr("x: class_names"));
  EXPECT_THAT(with("none", "some"), HasSubstr("x: fit"));
  EXPECT_THAT(with("{", "{\"orientation\":\"up\","), HasSubstr("x: orientation: up"));
  EXPECT_THAT(with("{", "{\"more\":1,"), HasSubstr("more"));
  EXPECT_THAT(with("{", ""), HasSubstr("x"));
}

}  // namespace
}  // namespace dtrain
