// ef_signsgd: sends the sign of each value, and one scale for each parameter, with error feedback (Karimireddy, Rebjock,
// Stich, Jaggi: "Error Feedback Fixes SignSGD and other Gradient Compression Schemes", ICML 2019, Algorithm 1).
//
//   p = residual + gradient;  sent = |p|_1 / d * sign(p);  residual = p - sent
//
// In the paper p has the learning rate in it, so a changed rate changes the weight of old errors; here the residual is in
// units of the gradient, as with all compressors.  sign(0) = 1.  Every worker gets the signs and scales of all, and adds
// what they stand for in the order of the ranks.
#include <cmath>
#include <cstring>

#include "framework/compress/coding.h"

namespace dtrain {
namespace {

constexpr int64_t kBits = 32;

uint32_t WordAt(const float* words, int64_t index) {
  uint32_t word;
  std::memcpy(&word, words + index, sizeof(word));
  return word;
}

class SignCoding : public Coding {
 public:
  explicit SignCoding(std::vector<ArenaEntry> parameters) : parameters_(std::move(parameters)) {
    int64_t words = 0;
    for (const ArenaEntry& parameter : parameters_) {
      first_.push_back(words);
      words += 1 + (parameter.range.size() + kBits - 1) / kBits;  // the scale, then the signs
    }
    rounds_ = {{words, true}};
    own_scale_.resize(parameters_.size());
  }

  const std::vector<Round>& rounds() const override { return rounds_; }

  void Encode(int, size_t parameter, const float* values, float* words) override {
    const int64_t n = parameters_[parameter].range.size();
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += std::abs(values[i]);
    const auto scale = static_cast<float>(sum / static_cast<double>(n));
    float* const mine = words + first_[parameter];
    mine[0] = own_scale_[parameter] = scale;
    for (int64_t begin = 0; begin < n; begin += kBits) {
      uint32_t word = 0;
      for (int64_t i = begin; i < std::min(begin + kBits, n); ++i) {
        word |= static_cast<uint32_t>(std::signbit(values[i] + 0.0f)) << (i - begin);
      }
      std::memcpy(mine + 1 + begin / kBits, &word, sizeof(word));
    }
  }

  // The memory of the words stays until the next step.
  void Decode(int, std::span<const std::span<const float>> parts) override {
    parts_.assign(parts.begin(), parts.end());
  }

  void Finish(size_t parameter, float* values, float* sum) override {
    const int64_t n = parameters_[parameter].range.size();
    std::fill_n(sum, n, 0.0f);
    for (const std::span<const float> part : parts_) {
      const float* const theirs = part.data() + first_[parameter];
      const float scale = theirs[0];
      for (int64_t i = 0; i < n; ++i) {
        sum[i] += (WordAt(theirs, 1 + i / kBits) >> (i % kBits) & 1) != 0 ? -scale : scale;
      }
    }
    const float scale = own_scale_[parameter];
    for (int64_t i = 0; i < n; ++i) values[i] -= std::signbit(values[i] + 0.0f) ? -scale : scale;
  }

 private:
  const std::vector<ArenaEntry> parameters_;
  std::vector<Round> rounds_;
  std::vector<int64_t> first_;                 // by parameter: its first word, the scale
  std::vector<float> own_scale_;               // by parameter, of this step
  std::vector<std::span<const float>> parts_;  // by rank
};

class EfSignSgd : public Coder {
 public:
  void Configure(config::Reader&, CompressConfig&) override {}
  std::unique_ptr<Coding> MakeCoding(std::vector<ArenaEntry> parameters, int,
                                     uint64_t) const override {
    return std::make_unique<SignCoding>(std::move(parameters));
  }
};

DTRAIN_COMPRESSOR(
    "ef_signsgd", EfSignSgd,
    "the sign of every value, and one scale for each parameter: a 32nd of the bytes a "
    "worker, gathered from all");

}  // namespace
}  // namespace dtrain
