// Compares a net with frozen layers on the module with the same net on the CPU: gradients, zero
// gradients of frozen layers, and the state that stays.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "framework/core/random.h"
#include "framework/nn/net.h"
#include "tests/nn/layer_harness.h"
#include "tests/support/entry_error.h"

namespace dtrain {
namespace {

constexpr char kOfNorms[] = R"(
name: norms
layers:
  - {name: conv1, type: convolution, outputs: 8, kernel: 3, pad: 1, bias: false}
  - {name: bn1, type: batch_norm}
  - {name: relu1, type: relu}
  - {name: conv2, type: convolution, outputs: 8, kernel: 3, pad: 1, bias: false}
  - {name: bn2, type: batch_norm}
  - {name: add, type: eltwise, input: [bn2, relu1]}
  - {name: flat, type: flatten}
  - {name: fc1, type: inner_product, outputs: 9, bias: false}
  - {name: bn3, type: batch_norm}
  - {name: relu3, type: relu}
  - {name: fc2, type: inner_product, outputs: 4}
  - {name: loss, type: softmax_cross_entropy, input: [fc2, label]}
)";
constexpr int64_t kNormSamples = 6, kNormPixels = 3 * 8 * 8;

struct NormStep {
  double loss = 0;
  std::vector<float> gradients, state;
};

class FrozenStepOnTheGpu : public testing::TestWithParam<std::vector<std::string>> {
 protected:
  FrozenStepOnTheGpu()
      : graph_(Graph::FromText(kOfNorms, "m.yaml",
                               {{"data", DType::kF32, {3, 8, 8}}, {"label", DType::kI32, {}}})),
        weights_(static_cast<size_t>(graph_.weights().size())),
        state_(static_cast<size_t>(graph_.state().size())),
        images_(kNormSamples * kNormPixels),
        labels_(kNormSamples) {
    for (const std::string& pattern : GetParam()) graph_.Freeze(pattern);
    graph_.InitializeWeights(7, weights_.data());
    graph_.InitializeState(state_.data());
    const Random random(13, Purpose::kSelfTest);
    for (size_t i = 0; i < state_.size(); ++i) state_[i] += random.Uniform(i, 0.1f, 0.6f);
    for (size_t i = 0; i < images_.size(); ++i) images_[i] = random.Normal(1000 + i);
    for (size_t i = 0; i < labels_.size(); ++i) labels_[i] = static_cast<int32_t>(i % 4);
  }

  // The gradients start as NaN, so that a result which depends on them shows.
  NormStep Step(const Device& device, int64_t parts) {
    Net net(graph_, device);
    const Tensor fields[] = {{images_.data(), {kNormSamples, 3, 8, 8}},
                             {labels_.data(), {kNormSamples}, DType::kI32}};
    NetInput input;
    input.fields = fields;
    input.samples = input.global_samples = kNormSamples;
    NormStep step;
    step.gradients.assign(weights_.size(), std::numeric_limits<float>::quiet_NaN());
    step.state = state_;
    step.loss = StepInParts(net, parts, weights_.data(), step.gradients.data(), step.state.data(),
                            input, nullptr)
                    .loss_sum;
    return step;
  }

  Graph graph_;
  std::vector<float> weights_, state_, images_;
  std::vector<int32_t> labels_;
};

TEST_P(FrozenStepOnTheGpu, IsTheCpus) {
  for (const int64_t parts : {1, 2}) {
    const NormStep got = Step(DeviceUnderTest(), parts),
                   want = Step({DeviceKind::kCpu, 1, CpuIsa()}, parts);
    EXPECT_NEAR(got.loss, want.loss, 1e-5 * want.loss);
    for (const ArenaEntry& entry : graph_.weights().entries) {
      for (int64_t i = entry.range.begin; i < entry.range.end && entry.lr_factor == 0; ++i) {
        ASSERT_EQ(got.gradients[i], 0) << entry.name;
      }
      const EntryError of(entry, got.gradients, want.gradients);
      EXPECT_LE(of.error, 1e-4 * of.norm + 1e-6) << entry.name;
    }
    for (const ArenaEntry& entry : graph_.state().entries) {
      for (int64_t i = entry.range.begin; i < entry.range.end; ++i) {
        if (entry.lr_factor == 0) {
          ASSERT_EQ(got.state[i], state_[i]) << entry.name;
        } else {
          ASSERT_NE(got.state[i], state_[i]) << entry.name;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, FrozenStepOnTheGpu,
                         testing::Values(std::vector<std::string>{"bn*"},
                                         std::vector<std::string>{"conv1", "bn1"},
                                         std::vector<std::string>{"conv*", "bn2", "fc1"}));

}  // namespace
}  // namespace dtrain
