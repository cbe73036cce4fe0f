// Tests the coders by themselves: several workers encode, their words are added or gathered, and all decode.
#include "framework/compress/coding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "framework/core/random.h"
#include "framework/core/state_record.h"
#include "tests/support/coded_workers.h"

namespace dtrain {
namespace {

using Numbers = CodedWorkers::Numbers;

// A matrix that is wide, one that is high, one of four axes, and two parameters of one axis.
std::vector<ArenaEntry> Parameters() {
  return {{"wide", {6, 40}, {0, 240}},
          {"bias", {7}, {240, 247}},
          {"high", {50, 5}, {247, 497}},
          {"conv", {4, 3, 3, 3}, {497, 605}},
          {"scale", {1}, {605, 606}}};
}
constexpr int64_t kAll = 606;

Numbers Normals(uint64_t worker, uint64_t step) {
  const Random random(4, Purpose::kSelfTest, worker, step);
  Numbers values;
  for (uint64_t i = 0; i < kAll; ++i) values.push_back(random.Normal(i));
  return values;
}

class Workers : public CodedWorkers {
 public:
  Workers(const std::string& compress, int workers)
      : CodedWorkers(compress, Parameters(), workers, 17) {}
};

std::vector<Numbers> GradientsOf(int workers, uint64_t step) {
  std::vector<Numbers> gradients;
  for (int w = 0; w < workers; ++w) gradients.push_back(Normals(static_cast<uint64_t>(w), step));
  return gradients;
}

double Norm(const Numbers& values) {
  double squares = 0;
  for (const float value : values) squares += double{value} * value;
  return std::sqrt(squares);
}

class CoderTest : public ::testing::TestWithParam<const char*> {};

// The sums that were sent and the residuals add up to the gradients.
TEST_P(CoderTest, LosesNothing) {
  constexpr int kWorkers = 3;
  Workers workers(GetParam(), kWorkers);
  std::vector<double> in(kAll), out(kAll);
  for (uint64_t step = 0; step < 5; ++step) {
    const std::vector<Numbers> gradients = GradientsOf(kWorkers, step);
    const Numbers sum = workers.Step(gradients);
    for (size_t i = 0; i < kAll; ++i) {
      for (const Numbers& gradient : gradients) in[i] += gradient[i];
      out[i] += sum[i];
      double kept = 0;
      for (size_t w = 0; w < kWorkers; ++w) kept += workers.residual(w)[i];
      ASSERT_NEAR(out[i] + kept, in[i], 1e-4) << "element " << i << ", step " << step;
    }
  }
}

// A saved coding continues with the same bits.
TEST_P(CoderTest, ContinuesFromItsState) {
  Workers whole(GetParam(), 1), again(GetParam(), 1);
  const auto gradient = [](uint64_t step) { return GradientsOf(1, step); };
  for (uint64_t step = 0; step < 3; ++step) whole.Step(gradient(step));
  for (uint64_t step = 0; step < 3; ++step) again.Step(gradient(step));
  Workers other(GetParam(), 1);
  const StateRecord state = RecordState([&](StateVisitor& to) { whole.coding(0).Visit(to); });
  PlayState(state, [&](StateVisitor& from) { again.coding(0).Visit(from); });
  EXPECT_EQ(again.Step(gradient(3)), whole.Step(gradient(3)));
}

TEST_P(CoderTest, ZerosAreZeros) {
  Workers workers(GetParam(), 2);
  for (int step = 0; step < 2; ++step) {
    const Numbers sum = workers.Step({Numbers(kAll), Numbers(kAll)});
    EXPECT_EQ(Norm(sum), 0);
    EXPECT_EQ(Norm(workers.residual(0)), 0);
  }
  EXPECT_GT(Norm(workers.Step(GradientsOf(2, 0))), 1);
}

INSTANTIATE_TEST_SUITE_P(All, CoderTest,
                         ::testing::Values("ef_signsgd", "{name: powersgd, rank: 1}",
                                           "{name: powersgd, rank: 3}",
                                           "{name: powersgd, rank: 100}"));

// |p - sent|^2 = (1 - |p|_1^2 / (d |p|_2^2)) |p|_2^2 for each parameter (Karimireddy et al., remark 8).
TEST(EfSignSgd, LeavesWhatTheFormulaSays) {
  Workers workers("ef_signsgd", 1);
  const Numbers p = Normals(0, 0);
  workers.Step({p});
  for (const ArenaEntry& parameter : Parameters()) {
    double length1 = 0, squares = 0, left = 0;
    for (int64_t i = parameter.range.begin; i < parameter.range.end; ++i) {
      const auto at = static_cast<size_t>(i);
      length1 += std::abs(p[at]);
      squares += double{p[at]} * p[at];
      left += double{workers.residual(0)[at]} * workers.residual(0)[at];
    }
    const auto d = static_cast<double>(parameter.range.size());
    EXPECT_NEAR(left, squares - length1 * length1 / d, 1e-4) << parameter.name;
  }
}

TEST(EfSignSgd, SendsABitForEachValueAndAScaleForEachParameter) {
  Workers workers("ef_signsgd", 1);
  // 240, 7, 250, 108 and 1 bits in words of 32, and five scales.
  EXPECT_EQ(workers.coding(0).rounds()[0].words, 8 + 1 + 8 + 4 + 1 + 5);
  EXPECT_TRUE(workers.coding(0).rounds()[0].gathered);
}

// The sum of the workers' signs, each with its scale, in the order of the workers.
TEST(EfSignSgd, AddsTheWorkersScaledSigns) {
  Workers workers("ef_signsgd", 3);
  const std::vector<Numbers> gradients = GradientsOf(3, 0);
  const Numbers sum = workers.Step(gradients);
  for (const ArenaEntry& parameter : Parameters()) {
    std::vector<float> scales;
    for (const Numbers& gradient : gradients) {
      double length = 0;
      for (int64_t i = parameter.range.begin; i < parameter.range.end; ++i) {
        length += std::abs(gradient[static_cast<size_t>(i)]);
      }
      scales.push_back(static_cast<float>(length / static_cast<double>(parameter.range.size())));
    }
    for (int64_t i = parameter.range.begin; i < parameter.range.end; ++i) {
      float expected = 0;
      for (size_t w = 0; w < 3; ++w) {
        expected += gradients[w][static_cast<size_t>(i)] < 0 ? -scales[w] : scales[w];
      }
      ASSERT_EQ(sum[static_cast<size_t>(i)], expected) << parameter.name << " " << i;
    }
  }
}

// The factors have all of a matrix when they have as many columns as the matrix has rows or columns.
TEST(PowerSgd, OfFullRankIsDense) {
  Workers workers("{name: powersgd, rank: 100}", 3);
  for (uint64_t step = 0; step < 4; ++step) {
    const std::vector<Numbers> gradients = GradientsOf(3, step);
    const Numbers sum = workers.Step(gradients);
    for (size_t i = 0; i < kAll; ++i) {
      const float dense = gradients[0][i] + gradients[1][i] + gradients[2][i];
      ASSERT_NEAR(sum[i], dense, 2e-4) << "element " << i << ", step " << step;
    }
  }
}

// A matrix of rank 2 is sent whole by factors of rank 2, and the third column finds nothing; when the matrix gets
// another direction, it is found.
TEST(PowerSgd, FindsAllOfAMatrixOfLowRank) {
  constexpr int64_t kRows = 6, kColumns = 40;
  const auto product = [](int directions) {
    Numbers values(kAll);
    for (int d = 0; d < directions; ++d) {
      const Random left(7, Purpose::kSelfTest, static_cast<uint64_t>(d), 1);
      const Random right(7, Purpose::kSelfTest, static_cast<uint64_t>(d), 2);
      for (int64_t row = 0; row < kRows; ++row) {
        for (int64_t column = 0; column < kColumns; ++column) {
          values[static_cast<size_t>(row * kColumns + column)] +=
              left.Normal(static_cast<uint64_t>(row)) * right.Normal(static_cast<uint64_t>(column));
        }
      }
    }
    return values;
  };
  Workers workers("{name: powersgd, rank: 3}", 1);
  for (const int directions : {2, 2, 3, 1, 3}) {
    const Numbers given = product(directions);
    const Numbers sum = workers.Step({given});
    for (size_t i = 0; i < kRows * kColumns; ++i) {
      ASSERT_NEAR(sum[i], given[i], 1e-3) << directions << " directions, element " << i;
    }
  }
}

// The power iteration over the steps finds the largest direction of a matrix that stays: the residual of a constant
// gradient is sent in the end, so the mean of what was sent approaches it.
TEST(PowerSgd, ErrorFeedbackSendsEverythingInTheEnd) {
  Workers workers("{name: powersgd, rank: 1}", 2);
  const std::vector<Numbers> gradients = GradientsOf(2, 0);
  Numbers given(kAll), sent(kAll);
  for (size_t i = 0; i < kAll; ++i) given[i] = gradients[0][i] + gradients[1][i];
  constexpr int kTimes = 200;
  for (int step = 0; step < kTimes; ++step) {
    const Numbers sum = workers.Step(gradients);
    for (size_t i = 0; i < kAll; ++i) sent[i] += sum[i] / kTimes;
  }
  Numbers difference(kAll);
  for (size_t i = 0; i < kAll; ++i) difference[i] = sent[i] - given[i];
  EXPECT_LT(Norm(difference), 0.1 * Norm(given));
}

TEST(PowerSgd, SendsTwoFactorsOfEachMatrix) {
  Workers workers("{name: powersgd, rank: 3}", 1);
  const auto& rounds = workers.coding(0).rounds();
  ASSERT_EQ(rounds.size(), 2u);
  EXPECT_EQ(rounds[0].words, 3 * 6 + 7 + 3 * 50 + 3 * 4 + 1);
  EXPECT_EQ(rounds[1].words, 3 * 40 + 3 * 5 + 3 * 27);
}

}  // namespace
}  // namespace dtrain
