// Compares the attention decoder's search on the GPU with the CPU's, which
// tests/nn/sequence_layers_test.cc tests, and checks choices that the layer suite does not meet.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "framework/device/buffer.h"
#include "framework/nn/step_decoder.h"
#include "layers/attention_decoder/attention_decoder.h"
#include "tests/nn/layer_harness.h"
#include "tests/support/sequence_inputs.h"

namespace dtrain {
namespace {

// The kernel of a decoding on the device under test, with device copies of its inputs and
// parameters.
class DeviceDecoding {
 public:
  explicit DeviceDecoding(Decoding& decoding) {
    KernelRequest request = decoding.run.request();
    request.device = DeviceUnderTest();
    const KernelEntry& entry = KernelRegistry::Of("attention_decoder", request.device.kind).front();
    kernel_ = entry.make(request, *entry.offer(request));
    const KernelArgs host = decoding.run.Args();
    for (const Tensor& input : host.inputs) inputs_.push_back(Copy(input));
    for (const Tensor& param : host.params) params_.push_back(Copy(param));
    request.device.Record().Wait();
  }

  StepDecoder* search() { return kernel_->step_decoder(); }
  KernelArgs Args() const {
    KernelArgs args;
    args.inputs = inputs_;
    args.params = params_;
    return args;
  }

 private:
  Tensor Copy(const Tensor& from) {
    const Device device = DeviceUnderTest();
    const auto bytes = static_cast<size_t>(from.shape.count()) * SizeOf(from.dtype);
    const Buffer& memory = memory_.emplace_back(device, bytes);
    device.queue->Upload(memory.data(), from.data, bytes);
    return {memory.data(), from.shape, from.dtype, from.format};
  }

  std::vector<Buffer> memory_;
  std::vector<Tensor> inputs_, params_;
  std::unique_ptr<Kernel> kernel_;
};

// Runs the same search on the GPU and on the CPU.
class StepDecoderOnTheGpu : public testing::Test {
 protected:
  void Start() {
    gpu_.search()->Start(gpu_.Args());
    cpu_->Start(decoding_.run.Args());
  }

  // Compares the scores that both compute for these rows.  Returns the most likely token of each
  // row.
  std::vector<int32_t> Step(const std::vector<int64_t>& parents,
                            const std::vector<int32_t>& tokens) {
    std::vector<float> got(parents.size() * kWords), want(got.size());
    gpu_.search()->Step(parents, tokens, got.data());
    cpu_->Step(parents, tokens, want.data());
    std::vector<int32_t> best;
    for (size_t row = 0; row < parents.size(); ++row) {
      best.push_back(Best(&got[row * kWords]));
      EXPECT_EQ(best.back(), Best(&want[row * kWords])) << "row " << row;
    }
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5) << i;
    return best;
  }

  Decoding decoding_{4, 6, {.mode = Mode::kEvaluate}};
  DeviceDecoding gpu_{decoding_};
  StepDecoder* const cpu_ = decoding_.run.kernel().step_decoder();
};

TEST_F(StepDecoderOnTheGpu, GreedySearchIsTheCpus) {
  Start();
  EXPECT_EQ(gpu_.search()->vocabulary(), kWords);
  EXPECT_EQ(gpu_.search()->sentences(), 3);
  std::vector<int32_t> tokens = {2, 5, 9};
  for (int64_t t = 0; t < 6; ++t) tokens = Step({0, 1, 2}, tokens);
}

// The steps have more rows than sentences, fewer, none, and more again.
TEST_F(StepDecoderOnTheGpu, HypothesesBranchChangePlacesAndEnd) {
  for (int search = 0; search < 2; ++search) {
    Start();
    Step({2, 0, 1, 2}, {2, 2, 2, 3});
    Step({3, 1, 3, 0, 2}, {9, 8, 7, 6, 4});
    Step({2, 0}, {5, 4});
    Step({1, 1, 1, 0, 0, 0, 1}, {2, 3, 4, 5, 6, 7, 8});
    Step({}, {});
  }
}

TEST_F(StepDecoderOnTheGpu, TrainingHasNoSearch) {
  Decoding training(4, 2, {});
  EXPECT_EQ(DeviceDecoding(training).search(), nullptr);
}

class AttentionDecoderOnTheGpu : public testing::Test {
 protected:
  static constexpr int64_t kSentences = 3, kSteps = 3, kVocabulary = 7;

  std::vector<float> Scores(const RefArgs& args) const {
    const KernelVariant variant = VariantsOf("attention_decoder", setup_, args.mode).front();
    return RunKernel(setup_, variant, args).outputs[0];
  }

  const CaseSetup setup_{
      "attention_decoder",
      {.name = "a few words",
       .yaml = "{hidden: 3, embedding: 2}",
       .inputs = {{kSentences, 3, 4}, {kSentences, 3}, {kSentences, 3}, {kSentences, kSteps}},
       .input_classes = {0, 0, 9, kVocabulary}}};
};

// The host, which would report the token, does not see it.  The sentence's scores become NaN; its
// neighbour's do not.
TEST_F(AttentionDecoderOnTheGpu, ATargetOutsideTheVocabularyGivesNaNs) {
  RefArgs args = setup_.Forward(Mode::kEvaluate);
  args.inputs[3].values[0] = -1;
  args.inputs[3].values[2 * kSteps] = kVocabulary;
  const std::vector<float> scores = Scores(args);
  for (size_t i = 0; i < scores.size(); ++i) {
    const auto sentence = static_cast<int64_t>(i) / (kSteps * kVocabulary);
    EXPECT_EQ(std::isnan(scores[i]), sentence != 1) << i;
  }
}

// Words 2 and 5 always have equal scores, the largest; the scores of the next steps show which one
// was taken.
TEST_F(AttentionDecoderOnTheGpu, OfEqualWordsTheFirstIsTaken) {
  RefArgs args = setup_.Forward(Mode::kEvaluate);
  constexpr int64_t kFeatures = 3 + 4 + 2;
  std::vector<double>& weight = args.params[AttentionDecoder::kOutWeight].values;
  std::copy_n(&weight[2 * kFeatures], kFeatures, &weight[5 * kFeatures]);
  for (const int64_t word : {2, 5}) args.params[AttentionDecoder::kOutBias].values[word] = 20;
  setup_.reference().Forward(setup_.layer(), args);
  const std::vector<float> scores = Scores(args);
  for (size_t i = 0; i < scores.size(); ++i) {
    EXPECT_NEAR(scores[i], args.outputs[0].values[i], 1e-5) << i;
  }
}

}  // namespace
}  // namespace dtrain
