// Tests every layer type of the registry, every case that it offers, and every kernel that takes
// the case:
//
//   reference  against central differences, in double;
//              layers with state in evaluation as well, which is how a frozen one trains
//   kernels    against the reference, on every instruction set, format and thread count offered;
//              those of 16 bits against the reference of rounded factors
//   samples    give the same bits whatever batch they are in
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include "framework/core/random.h"
#include "tests/nn/layer_harness.h"

namespace dtrain {
namespace {

struct SuiteCase {
  std::string type;
  LayerCase layer_case;
};

std::ostream& operator<<(std::ostream& out, const SuiteCase& c) {
  out << c.type << " '" << c.layer_case.name << "' " << c.layer_case.yaml;
  for (const Shape& shape : c.layer_case.inputs) out << " " << shape.ToString();
  return out;
}

std::vector<SuiteCase> AllCases() {
  std::vector<SuiteCase> cases;
  for (const auto& [type, entry] : LayerCaseRegistry::All()) {
    for (const LayerCase& layer_case : entry.cases) cases.push_back({type, layer_case});
  }
  return cases;
}

template <class Condition>
std::vector<SuiteCase> CasesWhere(Condition condition) {
  std::vector<SuiteCase> cases = AllCases();
  std::erase_if(cases, [&](const SuiteCase& c) { return !condition(c); });
  return cases;
}

std::string TestName(const testing::TestParamInfo<SuiteCase>& info) {
  std::string name = info.param.type + "_" + info.param.layer_case.name;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
}

class LayerSuite : public testing::TestWithParam<SuiteCase> {
 protected:
  const std::string& type() const { return GetParam().type; }
  const LayerCase& layer_case() const { return GetParam().layer_case; }
};

class LayerDifferences : public LayerSuite {};  // cases small enough for differences
class LayerKernels : public LayerSuite {};      // layers that are not views
class LayerBatches : public LayerSuite {};      // cases small enough for a batch of 64

// The scalar function whose gradients the reference computes.
double Objective(const CaseSetup& setup, const RefArgs& args) {
  double sum = 0;
  for (size_t k = 0; k < args.outputs.size(); ++k) {
    for (size_t i = 0; i < args.outputs[k].values.size(); ++i) {
      const bool loss = setup.layer().role() == LayerRole::kLoss;
      sum +=
          args.outputs[k].values[i] * (loss ? args.loss_scale : args.output_gradients[k].values[i]);
    }
  }
  return sum;
}

// Compares the numerical derivative by `values` (inside args) with `gradient` at about 50 places.
void CheckDifferences(const CaseSetup& setup, RefArgs& args, std::vector<double>& values,
                      const std::vector<double>& gradient, const std::string& what) {
  constexpr double kStep = 1e-6;
  const size_t stride = std::max<size_t>(1, values.size() / 50);
  for (size_t i = 0; i < values.size(); i += stride) {
    const double kept = values[i];
    double objective[2];
    for (const int side : {0, 1}) {
      values[i] = kept + (side == 0 ? -kStep : kStep);
      setup.reference().Forward(setup.layer(), args);
      objective[side] = Objective(setup, args);
    }
    values[i] = kept;
    const double expected = (objective[1] - objective[0]) / (2 * kStep);
    EXPECT_NEAR(gradient[i], expected, 1e-7 * (1 + std::abs(expected))) << what << "[" << i << "]";
  }
}

void CheckReference(const CaseSetup& setup, Mode mode) {
  RefArgs args = setup.Forward(mode);
  setup.Backward(args);
  const RefArgs analytic = args;
  for (size_t k = 0; k < args.inputs.size(); ++k) {
    if (!setup.HasGradient(k)) continue;
    CheckDifferences(setup, args, args.inputs[k].values, analytic.input_gradients[k].values,
                     "input " + std::to_string(k));
  }
  for (size_t k = 0; k < args.params.size(); ++k) {
    CheckDifferences(setup, args, args.params[k].values, analytic.param_gradients[k].values,
                     setup.layer().Params()[k].name);
  }
}

TEST_P(LayerDifferences, ReferenceMatchesCentralDifferences) {
  const CaseSetup setup(type(), layer_case());
  CheckReference(setup, Mode::kTrain);
  if (setup.HasState()) CheckReference(setup, Mode::kEvaluate);
}

// The error that a kernel may have: `factor` times the usual bound for fp32 sums, plus the rounding
// of results to a shorter format.  The latter is relative to the results before a bias of up to 1
// was added.
struct Allowed {
  double factor = 1;
  double rounding = 0;
};

// The bound is 8 eps sqrt(terms) times the larger of the value itself and the tensor's root mean
// square.
void ExpectClose(const std::vector<float>& got, const std::vector<double>& want, double terms,
                 const Allowed& allowed, double offset, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  double squares = 0;
  for (const double w : want) squares += w * w;
  const double rms = std::sqrt(squares / static_cast<double>(want.size()));
  const double relative =
      8 * std::numeric_limits<float>::epsilon() * std::sqrt(std::max(1.0, terms)) * allowed.factor;
  int failures = 0;
  for (size_t i = 0; i < want.size() && failures < 5; ++i) {
    const double expected = want[i] + offset;
    const double tolerance = relative * std::max({rms, std::abs(expected), 1e-6}) +
                             allowed.rounding * (std::abs(expected) + 1);
    if (std::abs(got[i] - expected) <= tolerance) continue;
    ++failures;
    ADD_FAILURE() << what << "[" << i << "] is " << got[i] << ", reference " << expected
                  << ", tolerance " << tolerance;
  }
}

// Returns the additions per element of a result of `count` elements, from the flops of all.
double TermsOf(double flops, int64_t count) { return flops / 2 / static_cast<double>(count); }

void CompareWithReference(const CaseSetup& setup, const KernelResult& got, const RefArgs& want,
                          const RunOptions& options, const Allowed& allowed) {
  const double flops = setup.layer().CostOf(setup.input_shapes()).forward_flops;
  for (size_t k = 0; k < want.outputs.size(); ++k) {
    const RefTensor& y = want.outputs[k];
    ExpectClose(got.outputs[k], y.values, TermsOf(flops, y.shape.count()), allowed, 0, "output");
  }
  for (size_t k = 0; k < want.next_state.size(); ++k) {
    const RefTensor& state = want.next_state[k];
    ExpectClose(got.state[k], state.values, TermsOf(flops, state.shape.count()), allowed, 0,
                setup.layer().State()[k].name);
  }
  for (size_t k = 0; k < got.input_gradients.size(); ++k) {
    if (got.input_gradients[k].empty()) continue;
    const RefTensor& dx = want.input_gradients[k];
    ExpectClose(got.input_gradients[k], dx.values, TermsOf(flops, dx.shape.count()), allowed,
                k == 0 && options.adds_input_gradient ? 1 : 0,
                "input gradient " + std::to_string(k));
  }
  for (size_t k = 0; k < got.param_gradients.size(); ++k) {
    const RefTensor& dw = want.param_gradients[k];
    const double terms = std::min(TermsOf(flops, dw.shape.count()),
                                  static_cast<double>(want.outputs[0].shape.count()));
    ExpectClose(got.param_gradients[k], dw.values, terms, allowed, options.accumulate ? 1 : 0,
                "gradient of " + setup.layer().Params()[k].name);
  }
}

// Returns the type of the kernel's images if it has 16 bits.
DType HalfTypeOf(const KernelVariant& variant) {
  const DType in = variant.offer.inputs[0].dtype, out = variant.offer.outputs[0].dtype;
  return SizeOf(in) == 2 ? in : SizeOf(out) == 2 ? out : DType::kF32;
}

// The rounding error of images of 16 bits is half of the last of 8 bits, or 11.  A convolution rounds before its bias is
// added and behind that.
double RoundingOf(const CaseSetup& setup, const KernelVariant& variant) {
  const DType type = HalfTypeOf(variant);
  if (type == DType::kF32) return 0;
  const bool twice = setup.type() == "convolution" && setup.layer().Params().size() > 1;
  return (twice ? 2.0 : 1.0) / (type == DType::kBF16 ? 256 : 2048);
}

// Returns the type to which the factors of the kernel's products are rounded.
DType FactorTypeOf(const KernelVariant& variant) {
  switch (variant.device.precision) {
    case Precision::kBf16:
      return DType::kBF16;
    case Precision::kFp16:
      return DType::kF16;
    default:
      return DType::kF32;
  }
}

// The reference's results, with which the variants are compared.
class Expectations {
 public:
  Expectations(const CaseSetup& setup, Mode mode) : setup_(setup), mode_(mode) {
    plain_ = setup.Forward(mode);
  }

  const RefArgs& For(const KernelVariant& variant) {
    const DType factor = FactorTypeOf(variant);
    const bool product = factor != DType::kF32;
    const DType in = variant.offer.inputs[0].dtype;
    const DType type = product ? factor : SizeOf(in) == 2 ? in : DType::kF32;
    std::optional<RefArgs>& want = wanted_[{factor, type, variant.fused_relu}];
    if (want) return *want;
    want = type == DType::kF32 ? plain_ : setup_.RoundedTo(type, plain_, product);
    if (variant.fused_relu) setup_.FuseRelu(*want, std::max(1e-4, 2 * RoundingOf(setup_, variant)));
    if (setup_.HasBackward(mode_)) setup_.Backward(*want);
    return *want;
  }

  // Returns the inputs and weights before rounding; a kernel of 16 bits rounds them itself.
  RefArgs GivenTo(const KernelVariant& variant) {
    RefArgs given = For(variant);
    given.inputs = plain_.inputs;
    given.params = plain_.params;
    return given;
  }

 private:
  const CaseSetup& setup_;
  const Mode mode_;
  RefArgs plain_;
  // The keys are the types of factors and of images, and whether a ReLU is fused.
  std::map<std::tuple<DType, DType, bool>, std::optional<RefArgs>> wanted_;
};

TEST_P(LayerKernels, KernelsMatchReference) {
  const CaseSetup setup(type(), layer_case());
  for (const Mode mode : {Mode::kTrain, Mode::kEvaluate, Mode::kEstimate}) {
    if (mode == Mode::kEstimate && !setup.HasState()) continue;  // the same as kEvaluate
    const std::vector<KernelVariant> variants = VariantsOf(type(), setup, mode);
    EXPECT_FALSE(variants.empty()) << "no kernel takes this case";
    Expectations expectations(setup, mode);
    for (const KernelVariant& variant : variants) {
      SCOPED_TRACE(variant.ToString());
      const RefArgs& want = expectations.For(variant);
      const RefArgs given = expectations.GivenTo(variant);
      for (const RunOptions& options :
           {RunOptions{}, RunOptions{.accumulate = true, .wants_input_gradients = false},
            RunOptions{.adds_input_gradient = true}}) {
        if (options.adds_input_gradient && !NeedsOf(setup, variant).backward_adds) continue;
        const KernelResult got = RunKernel(setup, variant, given, options);
        CompareWithReference(setup, got, want, options,
                             {layer_case().tolerance, RoundingOf(setup, variant)});
        if (mode != Mode::kTrain) break;
      }
    }
  }
}

// Evaluation must keep the state to the bit: a frozen layer relies on that.
TEST_P(LayerKernels, EvaluationKeepsTheState) {
  const CaseSetup setup(type(), layer_case());
  if (!setup.HasState()) return;
  const RefArgs args = setup.Draw(Mode::kEvaluate);
  for (const KernelVariant& variant : VariantsOf(type(), setup, Mode::kEvaluate)) {
    SCOPED_TRACE(variant.ToString());
    const KernelResult got = RunKernel(setup, variant, args);
    for (size_t k = 0; k < args.state.size(); ++k) {
      const std::vector<double>& before = args.state[k].values;
      EXPECT_EQ(got.state[k], std::vector<float>(before.begin(), before.end()));
    }
  }
}

TEST_P(LayerSuite, InPlaceChangesNothing) {
  const CaseSetup setup(type(), layer_case());
  const RefArgs args = setup.Draw(Mode::kTrain);
  for (const Mode mode : {Mode::kTrain, Mode::kEvaluate}) {
    for (const KernelVariant& variant : VariantsOf(type(), setup, mode)) {
      if (!CanRunInPlace(setup, variant)) continue;
      SCOPED_TRACE(variant.ToString());
      const KernelResult apart = RunKernel(setup, variant, args);
      const KernelResult in_place = RunKernel(setup, variant, args, {.in_place = true});
      EXPECT_EQ(apart.outputs, in_place.outputs);
      EXPECT_EQ(apart.input_gradients, in_place.input_gradients);
    }
  }
}

// Returns the difference that another batch size may cause.  A GPU's libraries then add in another
// order, which may change the last bit of a result of factors of 16 bits.
double RoomFor(const KernelVariant& variant) {
  const std::string& by = variant.entry->implementation;
  if (by != "cudnn" && by != "cublas") return 0;
  if (variant.device.precision == Precision::kFp16) return 0x1p-9;
  return variant.device.precision == Precision::kBf16 ? 0x1p-6 : 1e-4;
}

// Expects rows [first, first + rows) alone to give the bits that they have in the whole batch.
void ExpectSameRows(const CaseSetup& setup, KernelVariant variant, const RefArgs& args,
                    const std::vector<float>& whole, int64_t first, int64_t rows) {
  for (const int threads : {1, 2}) {
    if (threads > 1 && variant.device.kind != DeviceKind::kCpu) return;
    variant.device.threads = threads;
    const KernelResult part = RunKernel(setup, variant, args, {.first_row = first, .rows = rows});
    const int64_t begin = first * args.outputs[0].shape.CountFrom(1);
    const std::vector<float>& got = part.outputs[0];
    const double room = RoomFor(variant);
    const auto [at, was] = std::mismatch(
        got.begin(), got.end(), whole.begin() + begin,
        [room](float a, float b) { return a == b || std::abs(a - b) <= room * (1 + std::abs(b)); });
    EXPECT_TRUE(at == got.end()) << "rows " << first << " to " << first + rows - 1
                                 << " alone, threads " << threads << ": element "
                                 << at - got.begin() << " is " << *at << ", in the whole batch "
                                 << *was;
  }
}

constexpr int64_t kWholeBatch = 64;

TEST_P(LayerBatches, SamplesDoNotDependOnTheirBatch) {
  const int64_t batch = std::min(kWholeBatch, LargestBatch());
  ASSERT_GT(batch, 17);
  const CaseSetup setup(type(), layer_case(), batch);
  const RefArgs args = setup.Draw(Mode::kEvaluate);
  for (const KernelVariant& variant : VariantsOf(type(), setup, Mode::kEvaluate)) {
    if (variant.device.threads > 1) continue;  // ExpectSameRows runs both thread counts
    SCOPED_TRACE(variant.ToString());
    const std::vector<float> whole = RunKernel(setup, variant, args).outputs[0];
    for (const int64_t row : {int64_t{0}, int64_t{5}, batch - 1}) {
      ExpectSameRows(setup, variant, args, whole, row, 1);
    }
    ExpectSameRows(setup, variant, args, whole, 0, 17);
    ExpectSameRows(setup, variant, args, whole, 17, batch - 17);
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, LayerSuite, testing::ValuesIn(AllCases()), TestName);

INSTANTIATE_TEST_SUITE_P(Layers, LayerDifferences, testing::ValuesIn(CasesWhere([](auto& c) {
                           return c.layer_case.central_differences;
                         })),
                         TestName);

INSTANTIATE_TEST_SUITE_P(Layers, LayerKernels, testing::ValuesIn(CasesWhere([](auto& c) {
                           return !CaseSetup(c.type, c.layer_case).layer().is_view();
                         })),
                         TestName);

INSTANTIATE_TEST_SUITE_P(Layers, LayerBatches, testing::ValuesIn(CasesWhere([](auto& c) {
                           const CaseSetup setup(c.type, c.layer_case, kWholeBatch);
                           return setup.layer().CostOf(setup.input_shapes()).forward_flops <= 1e8;
                         })),
                         TestName);

// Every type has a small case for the tests that leave large cases out.
TEST(LayerRegistryTest, EveryLayerHasASmallCase) {
  for (const auto& [type, entry] : LayerRegistry::All()) {
    const auto cases = CasesWhere([&type = type](auto& c) {
      const CaseSetup setup(c.type, c.layer_case, kWholeBatch);
      return c.type == type && c.layer_case.central_differences &&
             setup.layer().CostOf(setup.input_shapes()).forward_flops <= 1e8;
    });
    EXPECT_FALSE(cases.empty()) << type;
  }
}

TEST(LayerRegistryTest, EveryLayerHasCasesAndKernels) {
  for (const auto& [type, entry] : LayerRegistry::All()) {
    EXPECT_NE(LayerCaseRegistry::Find(type), nullptr) << type << " has no cases";
    EXPECT_FALSE(entry.help.empty()) << type;
    if (!entry.make()->is_view()) {
      EXPECT_FALSE(KernelRegistry::Of(type, DeviceUnderTest().kind).empty())
          << type << " has no kernel";
    }
  }
}

// A folder holds one layer of its name, or a family of several.
TEST(LayerRegistryTest, EveryFolderHoldsItsLayerOrAFamily) {
  std::map<std::string, std::vector<std::string>> members;  // by folder
  for (const auto& entry : std::filesystem::directory_iterator(DTRAIN_SOURCE_DIR "/layers")) {
    if (entry.is_directory()) members[entry.path().filename()];
  }
  for (const std::string& type : LayerRegistry::Names()) {
    const std::filesystem::path folder =
        std::filesystem::path(LayerRegistry::FileOf(type)).parent_path();
    EXPECT_EQ(folder.parent_path().filename(), "layers") << type;
    EXPECT_TRUE(members.contains(folder.filename())) << type << " is in " << folder;
    members[folder.filename()].push_back(type);
  }
  for (const auto& [folder, types] : members) {
    if (types.size() < 2) {
      EXPECT_EQ(types, std::vector<std::string>{folder});
    } else {
      EXPECT_EQ(LayerRegistry::Find(folder), nullptr) << folder << " names a family and a layer";
    }
  }
}

}  // namespace
}  // namespace dtrain
