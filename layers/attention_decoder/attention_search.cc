// Runs the attention decoder one step at a time on the CPU, for greedy and beam search.
#include <algorithm>
#include <vector>

#include "framework/core/check.h"
#include "framework/device/cpu/parallel.h"
#include "framework/kernels/cpu/loops.h"
#include "framework/nn/tokens.h"
#include "layers/attention_decoder/decoder_kernel.h"

namespace dtrain {
namespace {

class AttentionStepDecoder : public StepDecoder {
 public:
  AttentionStepDecoder(const AttentionDecoder& layer, const Device& device)
      : layer_(layer), device_(device) {}

  int64_t vocabulary() const override { return layer_.vocabulary(); }
  int64_t sentences() const override { return static_cast<int64_t>(lengths_.size()); }

  void Start(const KernelArgs& args) override {
    const Tensor &encoded = args.inputs[0], &state = args.inputs[1], &source = args.inputs[2];
    const DecoderSizes sizes = DecoderSizes::Of(layer_, encoded.shape);
    packed_.resize(static_cast<size_t>(DecoderWeights::RoomFloats(sizes)));
    weights_ = DecoderWeights::Bind(sizes, args, packed_.data());
    RunTeam(device_.threads,
            [&](int thread, int team) { weights_.Pack(device_.isa, args, thread, team); });
    const int64_t N = encoded.shape[0], S = sizes.S;
    values_.assign(encoded.f32(), encoded.f32() + encoded.shape.count());
    states_.assign(state.f32(), state.f32() + state.shape.count());
    keys_.resize(static_cast<size_t>(N * S * sizes.A));
    weights_.Keys(device_.isa, Matrix::Dense(values_.data(), N * S, sizes.C),
                  Matrix::Dense(keys_.data(), N * S, sizes.A));
    lengths_.resize(N);
    sentence_.resize(N);
    for (int64_t n = 0; n < N; ++n) {
      lengths_[n] = SentenceLength(source.i32() + n * S, S, layer_.pad());
      sentence_[n] = n;
    }
  }

  void Step(std::span<const int64_t> parents, std::span<const int32_t> tokens,
            float* log_probabilities) override {
    DT_CHECK(parents.size() == tokens.size());
    Descend(parents, tokens);
    const DecoderSizes& s = weights_.sizes;
    const auto rows = static_cast<int64_t>(parents.size());
    RunTeam(device_.threads, [&](int thread, int team) {
      const Range share = SplitEvenly({0, rows}, team, thread);
      if (share.size() > 0) DecoderStep(device_.isa, weights_, RowsOf(share));
    });
    RunTeam(device_.threads, [&](int thread, int team) {
      const Range panels = SplitEvenly(weights_.all_panels(), team, thread);
      weights_.Logits(device_.isa, Matrix::Dense(features_.data(), rows, s.features()), panels,
                      Matrix::Dense(log_probabilities, rows, s.V));
    });
    ParallelFor(device_.threads, rows, [&](int64_t row) {
      DTRAIN_ISA_SELECT(device_.isa, LogSoftmax)(log_probabilities + row * s.V, s.V);
    });
    states_.resize(rows * s.H);
    for (int64_t i = 0; i < rows; ++i) {
      std::copy_n(features_.data() + i * s.features(), s.H, states_.data() + i * s.H);
    }
  }

 private:
  // Sets up the rows of this step: previous states, sentences and embedded tokens.
  void Descend(std::span<const int64_t> parents, std::span<const int32_t> tokens) {
    const DecoderSizes& s = weights_.sizes;
    const size_t rows = parents.size();
    before_.resize(rows * s.H);
    next_sentence_.resize(rows);
    features_.resize(rows * s.features());
    gates_.resize(rows * kGruRow * s.H);
    query_.resize(rows * s.A);
    attention_.resize(rows * s.S);
    from_state_.resize(rows * 3 * s.H);
    for (size_t i = 0; i < rows; ++i) {
      const auto parent = static_cast<size_t>(parents[i]);
      DT_CHECK(parent < sentence_.size()) << parents[i];
      DT_CHECK(tokens[i] >= 0 && tokens[i] < s.V) << tokens[i];
      std::copy_n(states_.data() + parent * s.H, s.H, before_.data() + i * s.H);
      next_sentence_[i] = sentence_[parent];
      std::copy_n(weights_.embedding + tokens[i] * s.E, s.E,
                  features_.data() + i * s.features() + s.H + s.C);
    }
    sentence_.swap(next_sentence_);
  }

  DecoderRows RowsOf(Range share) {
    const auto [H, C, E, A, V, S] = weights_.sizes;
    const auto view = [&](std::vector<float>& by_row, int64_t columns) {
      return Matrix::Dense(by_row.data() + share.begin * columns, share.size(), columns);
    };
    return {.state_before = view(before_, H),
            .features = view(features_, H + C + E),
            .query = view(query_, A),
            .gates = view(gates_, kGruRow * H),
            .weights = view(attention_, S),
            .from_state = view(from_state_, 3 * H),
            .sentence = sentence_.data() + share.begin,
            .keys = keys_.data(),
            .values = values_.data(),
            .lengths = lengths_.data()};
  }

  const AttentionDecoder& layer_;
  const Device device_;
  DecoderWeights weights_{};
  std::vector<float> packed_;
  std::vector<float> keys_, values_;  // per sentence
  std::vector<int64_t> lengths_;
  std::vector<float> states_;  // per row of the previous step
  std::vector<int64_t> sentence_, next_sentence_;
  std::vector<float> before_, features_, gates_, query_, attention_, from_state_;  // per row
};

}  // namespace

std::unique_ptr<StepDecoder> MakeAttentionStepDecoder(const AttentionDecoder& layer,
                                                      const Device& device) {
  return std::make_unique<AttentionStepDecoder>(layer, device);
}

}  // namespace dtrain
