// Packed products are right, and a row has the same bits whatever other rows are multiplied with
// it.
#include "framework/kernels/cpu/packed_gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "framework/core/random.h"

namespace dtrain {
namespace {

std::vector<float> Numbers(int64_t count, uint64_t stream) {
  std::vector<float> values(static_cast<size_t>(count));
  const Random random(1, Purpose::kSelfTest, stream);
  for (size_t i = 0; i < values.size(); ++i) values[i] = random.Uniform(i, -1, 1);
  return values;
}

struct Case {
  int64_t m, n, k;
  bool transposed;  // B is stored as [k, n]
};

class PackedGemm : public testing::TestWithParam<Case> {
 protected:
  const int64_t m = GetParam().m, n = GetParam().n, k = GetParam().k;
  const std::vector<float> a = Numbers(m * k, 1), b = Numbers(n * k, 2), bias = Numbers(n, 3);

  std::vector<float> Packed(Isa isa) const {
    std::vector<float> packed(static_cast<size_t>(PackedFloats(n, k)), NAN);
    DTRAIN_ISA_SELECT(isa, PackPanels)
    (GetParam().transposed ? PackSource::WholeTransposed(ConstMatrix::Dense(b.data(), k, n))
                           : PackSource::Whole(ConstMatrix::Dense(b.data(), n, k)),
     packed.data(), 0, PanelsOf(n));
    return packed;
  }

  // Multiplies rows [first, first + rows) in two calls: panels [0, split), then [split, all).
  std::vector<float> Product(Isa isa, int64_t first, int64_t rows, bool add, int64_t split) const {
    const std::vector<float> packed = Packed(isa);
    std::vector<float> c(static_cast<size_t>(rows * n), add ? 2.0f : NAN);
    const PackedProduct product = {
        .a = ConstMatrix::Dense(a.data(), m, k).Rows({first, first + rows}),
        .packed = packed.data(),
        .bias = bias.data(),
        .c = Matrix::Dense(c.data(), rows, n),
        .add = add};
    DTRAIN_ISA_SELECT(isa, MultiplyPacked)(product, 0, split);
    DTRAIN_ISA_SELECT(isa, MultiplyPacked)(product, split, PanelsOf(n));
    return c;
  }

  double Exact(int64_t row, int64_t column) const {
    double sum = bias[column];
    for (int64_t i = 0; i < k; ++i) {
      const float weight = GetParam().transposed ? b[i * n + column] : b[column * k + i];
      sum += static_cast<double>(a[row * k + i]) * weight;
    }
    return sum;
  }
};

TEST_P(PackedGemm, IsTheProduct) {
  for (int isa = 0; isa <= static_cast<int>(CpuIsa()); ++isa) {
    for (const bool add : {false, true}) {
      const std::vector<float> c = Product(static_cast<Isa>(isa), 0, m, add, 0);
      for (int64_t i = 0; i < m * n; ++i) {
        ASSERT_NEAR(c[i], Exact(i / n, i % n) + (add ? 2 : 0), 1e-6 * std::sqrt(k) * 4)
            << IsaName(static_cast<Isa>(isa)) << " element " << i;
      }
    }
  }
}

TEST_P(PackedGemm, RowsDoNotDependOnEachOther) {
  for (int isa = 0; isa <= static_cast<int>(CpuIsa()); ++isa) {
    const std::vector<float> whole = Product(static_cast<Isa>(isa), 0, m, false, 0);
    for (const int64_t rows : {int64_t{1}, m / 2, m - 1}) {
      const std::vector<float> part =
          Product(static_cast<Isa>(isa), m - rows, rows, false, PanelsOf(n) / 2);
      EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.end() - rows * n));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, PackedGemm,
                         testing::Values(Case{1, 1, 1, false}, Case{3, 47, 5, false},
                                         Case{9, 48, 16, true}, Case{17, 100, 33, true},
                                         Case{7, 145, 600, false}, Case{300, 50, 1030, false}));

// B is packed from two matrices, as in a layer that reads [c; e] but stores its weights for [e; c].
TEST(PackedGemmParts, StandBelowEachOther) {
  constexpr int64_t kColumns = 5, kFirst = 3, kSecond = 4, kDepth = kFirst + kSecond;
  const std::vector<float> w = Numbers(kColumns * kDepth, 4), a = Numbers(kDepth, 5);
  std::vector<float> packed(PackedFloats(kColumns, kDepth)), c(kColumns);
  const Isa isa = CpuIsa();
  const ConstMatrix weights = ConstMatrix::Dense(w.data(), kColumns, kDepth);
  const auto pack = [&](int64_t from, int64_t to, int64_t count) {
    DTRAIN_ISA_SELECT(isa, PackPanels)
    ({.weights = weights.Columns(from, count), .k = kDepth, .k_begin = to}, packed.data(), 0, 1);
  };
  pack(kSecond, 0, kFirst);
  pack(0, kFirst, kSecond);
  DTRAIN_ISA_SELECT(isa, MultiplyPacked)
  ({.a = ConstMatrix::Dense(a.data(), 1, kDepth),
    .packed = packed.data(),
    .bias = nullptr,
    .c = Matrix::Dense(c.data(), 1, kColumns)},
   0, 1);
  for (int64_t column = 0; column < kColumns; ++column) {
    double sum = 0;
    for (int64_t i = 0; i < kDepth; ++i) {
      sum += static_cast<double>(a[i]) * w[column * kDepth + (i + kSecond) % kDepth];
    }
    EXPECT_NEAR(c[column], sum, 1e-6);
  }
}

}  // namespace
}  // namespace dtrain
