// Tests the data set npy: the user's own NumPy arrays.
#include "framework/data/tables/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "framework/core/error.h"
#include "framework/data/images/image_set.h"
#include "framework/data/tables/number_set.h"
#include "tests/data/table_files.h"
#include "tests/data/temp_folder.h"
#include "tests/support/data_source.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Npy : public testing::Test {
 protected:
  // Writes both files and returns the keys train and train_labels for them.
  std::string Write(const std::string& samples, const std::string& labels) {
    folder_.Write("x.npy", samples);
    folder_.Write("y.npy", labels);
    return fmt::format("train: {}, train_labels: {}", (folder_ / "x.npy").string(),
                       (folder_ / "y.npy").string());
  }
  std::string Refusal(const std::string& samples) {
    folder_.Write("x.npy", samples);
    return WhatOf<DataError>([&] { ReadNpy(folder_ / "x.npy"); });
  }
  TempFolder folder_;
};

TEST_F(Npy, EveryTypeIsReadAsTheNumbersThatItHolds) {
  const auto numbers = [&](const std::string& file) {
    folder_.Write("x.npy", file);
    return InDouble(ReadNpy(folder_ / "x.npy").values.numbers);
  };
  EXPECT_THAT(numbers(NpyOf<float>("<f4", "2,", {1.5f, -2})), ElementsAre(1.5f, -2));
  EXPECT_THAT(numbers(NpyOf<double>("<f8", "2,", {1.5, -2})), ElementsAre(1.5f, -2));
  EXPECT_THAT(numbers(NpyOf<int8_t>("|i1", "2,", {-3, 4})), ElementsAre(-3, 4));
  EXPECT_THAT(numbers(NpyOf<int16_t>("<i2", "1, 2", {-300, 4})), ElementsAre(-300, 4));
  EXPECT_THAT(numbers(NpyOf<uint16_t>("<u2", "2,", {60000, 4})), ElementsAre(60000, 4));
  EXPECT_THAT(numbers(NpyOf<int32_t>("<i4", "2,", {-70000, 4})), ElementsAre(-70000, 4));
  EXPECT_THAT(numbers(NpyOf<int64_t>("<i8", "2,", {-70000, 4})), ElementsAre(-70000, 4));
  EXPECT_THAT(numbers(NpyOf<uint64_t>("<u8", "2,", {7, 4})), ElementsAre(7, 4));
  folder_.Write("x.npy", NpyOf<uint8_t>("|u1", "3,", {0, 9, 255}));
  EXPECT_THAT(ReadNpy(folder_ / "x.npy").values.bytes, ElementsAre(0, 9, 255));
}

TEST_F(Npy, OtherFilesAreRefusedByName) {
  EXPECT_THAT(Refusal("PK\3\4 an archive"), HasSubstr("does not begin as a .npy file"));
  EXPECT_THAT(Refusal(NpyOf<float>(">f4", "1,", {1})),
              AllOf(HasSubstr("x.npy"), HasSubstr("type '>f4'")));
  EXPECT_THAT(Refusal(NpyHeaderText("<f2", "0,")), HasSubstr("type '<f2'"));
  EXPECT_THAT(Refusal(NpyHeaderText("|O", "0,")), HasSubstr("its values are Python objects"));
  EXPECT_THAT(Refusal(NpyHeaderText("<U5", "0,")), HasSubstr("its values are texts"));
  EXPECT_THAT(Refusal(NpyHeaderText("<f4", "2, 2", "True")), HasSubstr("Fortran order"));
  EXPECT_THAT(Refusal(NpyOf<float>("<f4", "3,", {1, 2})),
              AllOf(HasSubstr("ends at byte"), HasSubstr("an array of [3]")));
  EXPECT_THAT(Refusal(NpyOf<float>("<f4", "1,", {1, 2})), HasSubstr("content follows at byte"));
  EXPECT_THAT(Refusal(NpyHeaderText("<f4", "1000000, 1000000")), HasSubstr("promises more"));
  EXPECT_THAT(Refusal(NpyHeaderText("<f4", "-1,")), HasSubstr("has no shape"));
  EXPECT_THAT(Refusal(NpyHeaderText("<f4", "1,").substr(0, 30)), HasSubstr("inside the header"));
  EXPECT_THAT(Refusal(NpyOf<float>("<f4", "2, 2", {1, 2, 3, std::nanf("")})),
              HasSubstr("value 1 of sample 1 is nan"));
  EXPECT_THAT(Refusal(NpyOf<double>("<f8", "1,", {1e300})),
              HasSubstr("is 1e+300, not a finite float32"));
}

TEST_F(Npy, ImagesOfBytesAreImagesWhereverTheirChannelsAre) {
  const std::vector<uint8_t> last = {1, 2, 3, 11, 12, 13, 21, 22, 23, 31, 32, 33,
                                     4, 5, 6, 14, 15, 16, 24, 25, 26, 34, 35, 36};
  const auto set = SourceOf("npy", Write(NpyOf<uint8_t>("|u1", "2, 2, 2, 3", last),
                                         NpyOf<int64_t>("<i8", "2,", {1, 0})) +
                                       ", class_names: [a, b, c]")
                       ->Load("", 1);
  const auto& images = dynamic_cast<const ImageSet&>(*set);
  EXPECT_EQ(images.image_shape(), (Shape{3, 2, 2}));
  EXPECT_THAT(std::vector<uint8_t>(images.images(Split::kTrain).images.begin(),
                                   images.images(Split::kTrain).images.begin() + 8),
              ElementsAre(1, 11, 21, 31, 2, 12, 22, 32));
  EXPECT_EQ(set->classes(), 3);
  EXPECT_THAT(set->image_info()->class_names, ElementsAre("a", "b", "c"));
  const std::string unclear =
      Write(NpyOf("|u1", "1, 3, 2, 3", std::vector<uint8_t>(18)), NpyOf<int64_t>("<i8", "1,", {0}));
  EXPECT_THAT(WhatOf<DataError>([&] { SourceOf("npy", unclear); }), HasSubstr("does not tell"));
}

TEST_F(Npy, SamplesFitAModelAsTheyDidInTraining) {
  std::vector<float> last(12);
  for (size_t i = 0; i < last.size(); ++i) last[i] = static_cast<float>(i * i);
  const std::string file = NpyOf<float>("<f4", "1, 2, 2, 3", last);
  const auto set = SourceOf("npy", Write(file, NpyOf<int64_t>("<i8", "1,", {0})) +
                                       ", class_names: [a, b], mean: [0], deviation: [1]")
                       ->Load("", 1);
  const auto fitted = [&](const std::string& samples, const Shape& shape) {
    folder_.Write("new.npy", samples);
    NpyArray array = ReadNpy(folder_ / "new.npy");
    FitSamples("new.npy", shape, array);
    return array;
  };
  const NpyArray turned = fitted(file, set->image_info()->image_shape);
  EXPECT_EQ(turned.shape, (Shape{1, 3, 2, 2}));
  EXPECT_EQ(turned.values.numbers, Numbers(SampleOf(*set, Split::kTrain, 0).first));
  EXPECT_EQ(fitted(NpyOf<float>("<f4", "1, 3, 2, 2", last), Shape{3, 2, 2}).values.numbers,
            Numbers(last));
  EXPECT_EQ(fitted(NpyOf<float>("<f4", "1, 3, 4", last), Shape{1, 3, 4}).values.numbers,
            Numbers(last));
  EXPECT_EQ(fitted(NpyOf<float>("<f4", "12,", last), Shape{1}).values.numbers, Numbers(last));
  const auto refusal = [&](const std::string& samples, const Shape& shape) {
    return WhatOf<DataError>([&] { fitted(samples, shape); });
  };
  EXPECT_THAT(refusal(NpyOf<float>("<f4", "1, 2, 3, 2", last), Shape{3, 2, 2}),
              AllOf(HasSubstr("new.npy: [1, 2, 3, 2]"), HasSubstr("[3, 2, 2]")));
  EXPECT_THAT(refusal(NpyOf<float>("<f4", "1, 12", last), Shape{3, 2, 2}), HasSubstr("[1, 12]"));
  EXPECT_THAT(refusal(NpyOf<float>("<f4", "1, 3, 4", last), Shape{12}), HasSubstr("[1, 3, 4]"));
  EXPECT_THAT(refusal(NpyOf("<f4", "1, 2, 2, 2", std::vector<float>(8)), Shape{2, 2, 2}),
              HasSubstr("does not tell which axis"));
}

TEST_F(Npy, VectorsAreNormalisedByTheirColumnsAndMayHaveNumbersAsLabels) {
  const std::string samples = NpyOf<float>("<f4", "3, 2", {1, 10, 2, 10, 6, 10});
  const auto classes =
      SourceOf("npy", Write(samples, NpyOf<uint8_t>("|u1", "3, 1", {2, 0, 1})))->Load("", 1);
  EXPECT_EQ(classes->fields()[0].sample_shape, Shape{2});
  EXPECT_EQ(classes->fields()[1].classes, 3);
  const double deviation = std::sqrt((4 + 1 + 9) / 3.0);
  const auto [x, label] = SampleOf(*classes, Split::kTrain, 2);
  EXPECT_NEAR(x[0], 3 / deviation, 1e-6);
  EXPECT_EQ(x[1], 0) << "a column that is the same everywhere";
  EXPECT_EQ(label, 1);
  const auto numbers = SourceOf("npy", Write(samples, NpyOf<float>("<f4", "3,", {2, 0.5f, 1})) +
                                           ", mean: [0], deviation: [2]")
                           ->Load("", 1);
  EXPECT_EQ(numbers->fields()[1].dtype, DType::kF32);
  EXPECT_EQ(SampleOf(*numbers, Split::kTrain, 1).first, (std::vector<float>{1, 5}));
  const double target_deviation = std::sqrt((4 + 0.25 + 1) / 3 - 3.5 * 3.5 / 9);
  EXPECT_NEAR(SampleOf(*numbers, Split::kTrain, 1).second, (0.5 - 3.5 / 3) / target_deviation,
              1e-6);
  numbers->KeepTargets();
  EXPECT_EQ(SampleOf(*numbers, Split::kTrain, 1).second, 0.5f);
  const std::string text = ToText(*numbers->image_info());
  EXPECT_EQ(ToText(ImageSetSpecFromText(text, "again")), text);
}

TEST_F(Npy, LabelsMustFit) {
  const std::string samples = NpyOf<float>("<f4", "2, 2", {1, 2, 3, 4});
  const auto refusal = [&](const std::string& labels, const std::string& more) {
    const std::string keys = Write(samples, labels) + more;
    return WhatOf<DataError>([&] { SourceOf("npy", keys); });
  };
  EXPECT_THAT(refusal(NpyOf<int32_t>("<i4", "3,", {0, 1, 2}), ""),
              HasSubstr("y.npy: labels [3] for the 2 samples of"));
  EXPECT_THAT(refusal(NpyOf<int32_t>("<i4", "2,", {0, -1}), ""),
              HasSubstr("y.npy: sample 1: the label is -1"));
  EXPECT_THAT(refusal(NpyOf<int32_t>("<i4", "2,", {0, 2}), ", class_names: [a, b]"),
              HasSubstr("classes are the whole numbers from 0 to 1"));
  EXPECT_THAT(refusal(NpyOf<float>("<f4", "2, 2", {0, 2, 1, 1}), ", task: classification"),
              HasSubstr("each label has 2 numbers"));
  EXPECT_THAT(WhatOf<ConfigError>([&] { SourceOf("npy", "train: a.npy, train_labels: b.npy"); }),
              AllOf(HasSubstr("test.yaml:1:"), HasSubstr("there is no file a.npy")));
}

TEST_F(Npy, WholeOneHotLabelsAreRefusedWithWhatMakesClassesOfThem) {
  const auto hint = [&](const std::vector<int64_t>& labels) {
    const std::string keys =
        Write(NpyOf<float>("<f4", "2, 1", {1, 2}), NpyOf<int64_t>("<i8", "2, 3", labels));
    return MessageOf<DataError>([&] { SourceOf("npy", keys); });
  };
  EXPECT_THAT(hint({1, 0, 0, 0, 0, 1}),
              AllOf(HasSubstr("each label has 3 numbers"), HasSubstr("numpy.argmax(labels, 1)")));
  EXPECT_THAT(hint({1, 0, 0, 0, 2, 1}), HasSubstr("data.task: regression"));
}

TEST_F(Npy, AColumnThatCountsTheSamplesIsWarnedOf) {
  const auto warnings = [&](const std::vector<float>& samples) {
    const std::string keys =
        Write(NpyOf<float>("<f4", "3, 2", samples), NpyOf<float>("<f4", "3,", {0.5f, 2, 1}));
    return SourceOf("npy", keys)->Load("", 1)->notes()->warnings;
  };
  EXPECT_THAT(warnings({7, 4, 3, 5, 5, 6}), ElementsAre("column 2 counts the samples"));
  EXPECT_THAT(warnings({7, 4, 3, 5, 5, 7}), ElementsAre());
}

// The naive sum of a million values of 0.1 is off by 1e-11 of it.
TEST(MeasureNumbers, EqualDoublesOfALargeTableAreConstant) {
  ImageSetSpec spec{.image_shape = Shape{1}, .numbers = true};
  const LabelledNumbers numbers{.samples = std::vector<double>(1'000'000, 0.1)};
  EXPECT_THAT(MeasureNumbers(numbers, spec), ElementsAre(0));
  EXPECT_EQ(spec.mean[0], 0.1);
  EXPECT_EQ(spec.deviation[0], 1);
}

}  // namespace
}  // namespace dtrain
