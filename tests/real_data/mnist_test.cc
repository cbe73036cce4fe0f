// Tests the real MNIST if DTRAIN_DATA has it.
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "framework/data/dataset.h"
#include "framework/data/files/catalog.h"
#include "tests/support/data_source.h"

namespace dtrain {
namespace {
namespace fs = std::filesystem;

TEST(Mnist, RealFiles) {
  const fs::path root = RealDataRoot("mnist");
  if (root.empty()) GTEST_SKIP() << NoRealData("mnist");
  const auto source = DatasetRegistry::Get("data set", "mnist").make();
  const auto set = source->Load(LocateData("mnist", root), 1);
  ASSERT_EQ(set->size(Split::kTrain), 60000);
  ASSERT_EQ(set->size(Split::kTest), 10000);
  // The normalisation constants are the mean and deviation of the training images.
  std::vector<int64_t> all(60000);
  std::iota(all.begin(), all.end(), 0);
  Batch batch(set->fields(), 60000);
  set->Fill(Split::kTrain, all, 0, batch);
  double sum = 0, squares = 0;
  const int64_t count = batch.fields[0].shape.count();
  for (int64_t i = 0; i < count; ++i) {
    const double v = batch.fields[0].f32()[i];
    sum += v;
    squares += v * v;
  }
  EXPECT_NEAR(sum / count, 0, 1e-3);
  EXPECT_NEAR(squares / count, 1, 1e-3);
  std::vector<int> classes(10);
  for (int i = 0; i < 60000; ++i) ++classes[batch.fields[1].i32()[i]];
  EXPECT_EQ(classes,
            (std::vector<int>{5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949}));
}

TEST(Mnist, RealFilesVerify) {
  const fs::path root = RealDataRoot("mnist");
  if (root.empty()) GTEST_SKIP() << NoRealData("mnist");
  const VerifyReport report = VerifyDataset("mnist", root);
  EXPECT_TRUE(report.ok()) << VerifyText(report);
}

}  // namespace
}  // namespace dtrain
