// Tests which elements a view of a matrix shows.
#include "framework/kernels/cpu/matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace dtrain {
namespace {

using testing::ElementsAre;

std::vector<std::vector<float>> Shown(const ConstMatrix& m) {
  std::vector<std::vector<float>> rows;
  for (int64_t i = 0; i < m.rows; ++i) rows.emplace_back(m.Row(i), m.Row(i) + m.columns);
  return rows;
}

class MatrixTest : public testing::Test {
 protected:
  MatrixTest() : numbers_(12) { std::iota(numbers_.begin(), numbers_.end(), 0.0f); }

  std::vector<float> numbers_;
  const Matrix all_ = Matrix::Dense(numbers_.data(), 4, 3);
};

TEST_F(MatrixTest, RowsAndColumnsAreParts) {
  EXPECT_THAT(Shown(all_.Rows({1, 3})), ElementsAre(ElementsAre(3, 4, 5), ElementsAre(6, 7, 8)));
  EXPECT_THAT(Shown(all_.Columns(1, 2).Rows({2, 4})),
              ElementsAre(ElementsAre(7, 8), ElementsAre(10, 11)));
  EXPECT_EQ(all_.Rows({2, 2}).rows, 0);
}

// A [2, 2, 3] array is read step by step: this view holds the second step of both samples.
TEST_F(MatrixTest, EveryTakesAStepOfEachSample) {
  EXPECT_THAT(Shown(all_.Every(2, 1, 2)),
              ElementsAre(ElementsAre(3, 4, 5), ElementsAre(9, 10, 11)));
  EXPECT_THAT(Shown(all_.Every(2, 2, 1).Columns(0, 1)), ElementsAre(ElementsAre(6)));
}

TEST_F(MatrixTest, AViewWritesWhatItShows) {
  all_.Columns(2, 1).Row(3)[0] = -1;
  EXPECT_EQ(numbers_[11], -1);
}

}  // namespace
}  // namespace dtrain
