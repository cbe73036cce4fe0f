// The program on the user's own images: training, classes from a trained model, and training on with another head.
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/data/image_files.h"
#include "tests/system/system_fixture.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kSide = 12;

// Returns noise that is dark, light, or light in every third row or column.
std::string ImageOf(const std::string& name, uint64_t seed) {
  std::vector<uint8_t> pixels = NoisyPixels(kSide, kSide, 3, seed);
  for (int64_t i = 0; i < std::ssize(pixels); ++i) {
    const int64_t row = i / (3 * kSide), column = i / 3 % kSide;
    const bool light = name == "light" || (name == "rows" && row % 3 == 0) ||
                       (name == "columns" && column % 3 == 0);
    pixels[i] = static_cast<uint8_t>(pixels[i] / 3 + (light ? 160 : 0));
  }
  return seed % 2 == 0 ? PngOf(pixels, kSide, kSide, PNG_FORMAT_RGB)
                       : JpegOf(pixels, kSide, kSide, 3);
}

class ImagesSystemTest : public SystemTest {
 protected:
  void Draw(const std::string& folder, const std::vector<std::string>& classes, int each) {
    for (const std::string& name : classes) {
      fs::create_directories(folder_ / folder / name);
      for (int i = 0; i < each; ++i) {
        const std::string file = std::to_string(i) + (i % 2 == 0 ? ".png" : ".jpg");
        std::ofstream(folder_ / folder / name / file) << ImageOf(name, static_cast<uint64_t>(i));
      }
    }
  }
  void WriteModel(const std::string& name, int outputs) {
    std::ofstream(folder_ / (name + ".yaml"))
        << "name: " << name << "\nsample: [3, 12, 12]\nlayers:\n"
        << "  - {name: conv1, type: convolution, outputs: 8, kernel: 3}\n"
        << "  - {name: relu1, type: relu}\n"
        << "  - {name: pool1, type: pooling, method: max, kernel: 2, stride: 2}\n"
        << "  - {name: fc, type: inner_product, outputs: " << outputs << ", lr_factor: 2}\n"
        << "  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}\n"
        << "  - {name: accuracy, type: accuracy, input: [fc, label]}\n";
  }
};

TEST_F(ImagesSystemTest, FromAFolderToClassesAndToAnotherHead) {
  Draw("three", {"dark", "light", "rows"}, 60);
  WriteModel("small", 3);
  std::ofstream(folder_ / "run.yaml")
      << "model: {name: ./small.yaml}\n"
         "data: {name: image_folder, train: three, validation: 0.2, crop: 1, flip: true}\n"
         "batch: 16\nepochs: 20\nsolver: {name: sgd, lr: 0.05, momentum: 0.9}\n"
         "stop: {target: 1}\ncheckpoint: {keep_best: true}\n";
  const Outcome trained = Run("train --config run.yaml --output run");
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_THAT(trained.err, HasSubstr("the run ends here: its target is reached"));
  EXPECT_THAT(trained.out,
              AllOf(HasSubstr("test accuracy 100.00 %"), HasSubstr(", of the weights of epoch ")));

  Draw("others", {"dark", "light", "rows"}, 2);
  const Outcome one = Run("predict --weights run others/rows/1.jpg --top 1");
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_THAT(one.out, HasSubstr("others/rows/1.jpg  rows "));
  // Turned upright, its light columns are rows.
  std::ofstream(folder_ / "phone.jpg") << WithExif(ImageOf("columns", 1), 6);
  const Outcome phone = Run("predict --weights run phone.jpg --top 1");
  EXPECT_THAT(phone.out, HasSubstr("phone.jpg  rows "));
  EXPECT_THAT(phone.err, HasSubstr("1 image turned upright by EXIF orientation"));
  EXPECT_THAT(Run("predict --weights run --top 1 phone.jpg phone.jpg others/rows/1.jpg").err,
              HasSubstr("2 images turned upright"));
  fs::create_directories(folder_ / "phones");
  for (const char* name : {"phones/a.jpg", "phones/b.jpg", "phones/c.jpg"}) {
    fs::copy_file(folder_ / "phone.jpg", folder_ / name);
  }
  const Outcome phones = Run("predict --weights run --top 1 phones");
  EXPECT_EQ(std::count(phones.out.begin(), phones.out.end(), '\n'), 3) << phones.out;
  EXPECT_THAT(phones.err, HasSubstr("3 images turned upright"));
  std::ofstream(folder_ / "others/broken.png") << ImageOf("dark", 0).substr(0, 90);
  const Outcome all = Run("predict --weights run --json others");
  EXPECT_EQ(all.code, 3);
  EXPECT_THAT(all.err, AllOf(HasSubstr("others/broken.png: the PNG is broken"),
                             HasSubstr("1 file could not be predicted")));
  for (const char* name : {"dark", "light", "rows"}) {
    EXPECT_THAT(all.out, HasSubstr(std::string("{\"classes\":[{\"class\":\"") + name + "\","));
  }
  EXPECT_THAT(Run("eval --weights run --json").out, HasSubstr("\"accuracy\":1.0"));

  Draw("four", {"columns", "dark", "light", "rows"}, 40);
  WriteModel("wider", 4);
  std::ofstream(folder_ / "tune.yaml")
      << "model: {name: ./wider.yaml}\ndata: {name: image_folder, train: four}\n"
         "weights: {from: run, except: [fc], freeze: [conv1]}\n"
         "batch: 16\nepochs: 6\nsolver: {name: sgd, lr: 0.05, momentum: 0.9}\n";
  const Outcome refused =
      Run("train --config tune.yaml --set 'weights.except=[]' --output refused");
  EXPECT_EQ(refused.code, 6);
  EXPECT_THAT(refused.err, HasSubstr("weights.except"));
  const Outcome tuned = Run("train --config tune.yaml --output tuned --workers 2");
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  EXPECT_THAT(tuned.err, HasSubstr("weights of run; re-initialised: "));
  EXPECT_THAT(Run("ckpt diff run/checkpoints/best.h5 tuned").out,
              AllOf(HasSubstr("fc.weight"), Not(HasSubstr("conv1"))));
  // The images are not needed for the rest.
  fs::remove_all(folder_ / "three");
  fs::remove_all(folder_ / "four");
  EXPECT_THAT(Run("predict --weights tuned --top 1 others/light/0.png").out,
              HasSubstr("others/light/0.png  light "));
}

}  // namespace
}  // namespace dtrain
