// Tests that layers whose products read factors in 16 bits (framework/kernels/cuda/matrix_product.h) compute what they do
// in fp32, but for rounding.  The layer suite computes them in fp32 alone.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/nn/layer_harness.h"

namespace dtrain {
namespace {

struct PrecisionCase {
  std::string name, type, yaml;
  std::vector<Shape> inputs;
  std::vector<int64_t> input_classes;
};

void PrintTo(const PrecisionCase& c, std::ostream* out) { *out << c.type << ", " << c.name; }

double NormOf(const std::vector<float>& values) {
  double sum = 0;
  for (const float v : values) sum += static_cast<double>(v) * v;
  return std::sqrt(sum);
}

// A factor that is missing or stale changes a result by about as much as the result is; rounding by a hundredth.
void ExpectNear(const std::vector<std::vector<float>>& got,
                const std::vector<std::vector<float>>& want, double bound,
                const std::string& what) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t k = 0; k < want.size(); ++k) {
    ASSERT_EQ(got[k].size(), want[k].size()) << what << k;
    std::vector<float> difference(want[k].size());
    for (size_t i = 0; i < difference.size(); ++i) difference[i] = got[k][i] - want[k][i];
    EXPECT_LE(NormOf(difference), bound * NormOf(want[k])) << what << k;
  }
}

class RecurrentPrecision : public testing::TestWithParam<PrecisionCase> {};

TEST_P(RecurrentPrecision, IsThatOfFp32ButForRounding) {
  const PrecisionCase& c = GetParam();
  const CaseSetup setup(
      c.type, {.name = "", .yaml = c.yaml, .inputs = c.inputs, .input_classes = c.input_classes});
  RefArgs args = setup.Forward(Mode::kTrain);
  setup.Backward(args);
  KernelVariant variant = VariantsOf(c.type, setup, Mode::kTrain).at(0);
  for (const bool accumulate : {false, true}) {
    variant.device = DeviceUnderTest();
    const RunOptions options = {.accumulate = accumulate};
    const KernelResult want = RunKernel(setup, variant, args, options);
    for (const auto& [precision, bound] :
         {std::pair{Precision::kBf16, 0.03}, std::pair{Precision::kFp16, 0.006}}) {
      variant.device = DeviceUnderTest(precision);
      const KernelResult got = RunKernel(setup, variant, args, options);
      EXPECT_NE(got.outputs, want.outputs) << "nothing was rounded";
      ExpectNear(got.outputs, want.outputs, bound, "output ");
      ExpectNear(got.input_gradients, want.input_gradients, bound, "gradient by input ");
      ExpectNear(got.param_gradients, want.param_gradients, bound, "gradient by parameter ");
    }
  }
}

// Sizes of whole packs of eight have copies in 16 bits; others are rounded by each product.
const std::vector<Shape> kSentences = {{5, 6, 16}, {5, 6}}, kOddSentences = {{5, 6, 10}, {5, 6}};
const std::vector<int64_t> kSentenceClasses = {0, 9}, kTranslationClasses = {0, 0, 9, 24};
const std::vector<Shape> kTranslations = {{5, 4, 24}, {5, 16}, {5, 4}, {5, 6}};

INSTANTIATE_TEST_SUITE_P(
    Layers, RecurrentPrecision,
    testing::Values(
        PrecisionCase{"both ways", "gru", "{hidden: 16, bidirectional: true}", kSentences,
                      kSentenceClasses},
        PrecisionCase{"layers", "gru", "{hidden: 8, layers: 2, bidirectional: true}", kSentences,
                      kSentenceClasses},
        PrecisionCase{"dropout", "gru", "{hidden: 16, layers: 2, dropout: 0.4}", kSentences,
                      kSentenceClasses},
        PrecisionCase{"odd", "gru", "{hidden: 10, bidirectional: true}", kOddSentences,
                      kSentenceClasses},
        PrecisionCase{"half packs", "gru", "{hidden: 4, bidirectional: true}", kSentences,
                      kSentenceClasses},
        PrecisionCase{"both ways", "lstm", "{hidden: 16, bidirectional: true}", kSentences,
                      kSentenceClasses},
        PrecisionCase{"layers", "lstm", "{hidden: 16, layers: 2}", kSentences, kSentenceClasses},
        PrecisionCase{"dropout", "attention_decoder",
                      "{hidden: 16, embedding: 8, attention: 16, dropout: 0.5, teacher_forcing: 1}",
                      kTranslations, kTranslationClasses},
        PrecisionCase{"no dropout", "attention_decoder",
                      "{hidden: 16, embedding: 16, attention: 8, teacher_forcing: 1}",
                      kTranslations, kTranslationClasses},
        PrecisionCase{"odd", "attention_decoder",
                      "{hidden: 16, embedding: 6, attention: 10, teacher_forcing: 1}",
                      kTranslations, kTranslationClasses}));

}  // namespace
}  // namespace dtrain
