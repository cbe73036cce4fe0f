// Runs the attention decoder one step at a time on the GPU, for greedy and beam search.
#include <numeric>
#include <vector>

#include "framework/core/check.h"
#include "framework/device/buffer.h"
#include "framework/kernels/cuda/cells.h"
#include "framework/kernels/cuda/rows.h"
#include "layers/attention_decoder/decoder_step_cuda.h"

namespace dtrain {
namespace {

// The host keeps the sentence number of each hypothesis; all other data stay on the GPU. A hypothesis's result is
// independent of the other rows only as far as cuBLAS computes a row in the same way for any number of rows.
class AttentionStepDecoderCuda : public StepDecoder {
 public:
  AttentionStepDecoderCuda(const AttentionDecoder& layer, const Device& device)
      : layer_(layer), device_(device), queue_(QueueOf(device_)) {}

  int64_t vocabulary() const override { return layer_.vocabulary(); }
  int64_t sentences() const override { return sentences_; }

  void Start(const KernelArgs& args) override {
    const Tensor &encoded = args.inputs[0], &state = args.inputs[1], &source = args.inputs[2];
    const DecoderSizes s = DecoderSizes::Of(layer_, encoded.shape);
    params_ = DecoderParams::Of(s, args.params);
    sentences_ = encoded.shape[0];
    sentence_.resize(sentences_);
    std::iota(sentence_.begin(), sentence_.end(), 0);
    const DeviceMatrix values = Copy(values_, encoded.f32(), sentences_ * s.S, s.C);
    DecoderKeys(queue_, params_, values, Room(keys_, sentences_ * s.S, s.A));
    FindLengths(queue_, source.i32(), sentences_, s.S, layer_.pad(),
                Integers(Room(lengths_, sentences_, 1)));
    states_ = Copy(first_states_, state.f32(), sentences_, s.H);
  }

  void Step(std::span<const int64_t> parents, std::span<const int32_t> tokens,
            float* log_probabilities) override {
    DT_CHECK(parents.size() == tokens.size());
    Descend(parents, tokens);
    const auto rows = static_cast<int64_t>(parents.size());
    if (rows == 0) return;
    const DecoderSizes& s = params_.sizes;
    // These are the parents of all rows, then their tokens, then their sentences.
    int32_t* const numbers = Integers(Room(numbers_, 3, rows));
    queue_.Upload(numbers, host_numbers_.data(), host_numbers_.size() * sizeof(int32_t));
    const DeviceMatrix before = Room(before_, rows, s.H);
    TakeRows(queue_, numbers, 1, states_, before);
    const DeviceMatrix features = Room(features_, rows, s.features());
    TakeRows(queue_, numbers + rows, 1, params_.embedding, features.Columns(s.H + s.C, s.E));
    SoftmaxSum* const sums = Sums(rows);
    const AttentionRows attention = {.keys = keys_.f32(),
                                     .values = values_.f32(),
                                     .v = params_.v,
                                     .lengths = static_cast<const int32_t*>(lengths_.data()),
                                     .sentence = numbers + 2 * rows,
                                     .sentences = sentences_,
                                     .query = Room(query_, rows, s.A),
                                     .weights = Room(weights_, rows, s.S)};
    DecoderStep(queue_, params_,
                {.state_before = before,
                 .features = features,
                 .gates = Room(gates_, rows, GruCell::kRow * s.H),
                 .from_state = Room(from_state_, rows, 3 * s.H).data,
                 .attention = attention,
                 .sums = sums});
    const DeviceMatrix logits = Room(logits_, rows, s.V);
    DecoderLogits(queue_, params_, features, logits);
    LogSoftmax(queue_, logits, sums);
    queue_.Download(log_probabilities, logits.data,
                    static_cast<size_t>(rows * s.V) * sizeof(float));
    states_ = features.Columns(0, s.H);
    queue_.Wait();
  }

 private:
  // Checks the arguments of this step and finds the rows' sentences.
  void Descend(std::span<const int64_t> parents, std::span<const int32_t> tokens) {
    const size_t rows = parents.size();
    host_numbers_.resize(3 * rows);
    for (size_t i = 0; i < rows; ++i) {
      const auto parent = static_cast<size_t>(parents[i]);
      DT_CHECK(parent < sentence_.size()) << parents[i];
      DT_CHECK(tokens[i] >= 0 && tokens[i] < vocabulary()) << tokens[i];
      host_numbers_[i] = static_cast<int32_t>(parent);
      host_numbers_[rows + i] = tokens[i];
      host_numbers_[2 * rows + i] = sentence_[parent];
    }
    sentence_.assign(host_numbers_.begin() + static_cast<std::ptrdiff_t>(2 * rows),
                     host_numbers_.end());
  }

  // Returns a matrix in `memory`, which is reallocated only if it is too small.
  DeviceMatrix Room(Buffer& memory, int64_t rows, int64_t columns) const {
    const auto bytes = static_cast<size_t>(rows * columns) * sizeof(float);
    if (memory.bytes() < bytes) memory = Buffer(device_, bytes);
    return DeviceMatrix::Dense(memory.f32(), rows, columns);
  }
  SoftmaxSum* Sums(int64_t rows) {
    constexpr auto kFloats = static_cast<int64_t>(sizeof(SoftmaxSum) / sizeof(float));
    return reinterpret_cast<SoftmaxSum*>(Room(sums_, rows, kFloats).data);
  }
  static int32_t* Integers(const DeviceMatrix& room) {
    return reinterpret_cast<int32_t*>(room.data);
  }
  DeviceMatrix Copy(Buffer& memory, const float* from, int64_t rows, int64_t columns) const {
    const DeviceMatrix to = Room(memory, rows, columns);
    queue_.Copy(to.data, from, static_cast<size_t>(rows * columns) * sizeof(float));
    return to;
  }

  const AttentionDecoder& layer_;
  const Device device_;
  CudaQueue& queue_;
  DecoderParams params_{};
  int64_t sentences_ = 0;
  Buffer keys_, values_, lengths_, first_states_;  // per sentence
  // These are the sentences and states of the previous step's rows. states_ is a view of first_states_ or of features_.
  std::vector<int32_t> sentence_;
  DeviceMatrix states_;
  std::vector<int32_t> host_numbers_;
  Buffer numbers_, before_, features_, query_, gates_, weights_, from_state_, sums_, logits_;
};

}  // namespace

std::unique_ptr<StepDecoder> MakeAttentionStepDecoderCuda(const AttentionDecoder& layer,
                                                          const Device& device) {
  return std::make_unique<AttentionStepDecoderCuda>(layer, device);
}

}  // namespace dtrain
