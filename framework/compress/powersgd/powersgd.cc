// powersgd: sends two thin factors of each matrix, with error feedback (Vogels, Karimireddy, Jaggi: "PowerSGD: Practical
// Low-Rank Gradient Compression for Distributed Optimization", NeurIPS 2019, Algorithms 1 and 2).
//
//   M = residual + gradient, as a matrix with a row for each output (the first axis)
//   P = M Q, summed over the workers, its columns made orthonormal
//   Q = M^T P, summed over the workers
//   sum = P Q^T;  residual = M - sum / workers
//
// Q is Gaussian at first and then kept from step to step, a power iteration over the steps.  Parameters of one axis
// (biases, batch norm) are summed whole; a small matrix has factors, too, even where they are no smaller.
//
// In the paper M is a mean over the workers.  Here a worker's M is its part of the mean, so factors are summed, and its
// residual is what its part differs from an equal share.
#include <cmath>

#include <fmt/format.h>

#include "framework/compress/coding.h"
#include "framework/core/random.h"
#include "framework/core/state_record.h"

namespace dtrain {
namespace {

// A column that is shorter than this after the others were taken from it, as a part of what it was, is rounding.
constexpr double kNothing = 1e-5;

double Dot(const float* a, const float* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += double{a[i]} * b[i];
  return sum;
}

// The two factors of one matrix.  Their columns are stored one after the other.
struct Factors {
  int64_t rows = 0, columns = 0, rank = 0;  // rank 0: the parameter is summed whole
  int64_t first_p = 0, first_q = 0;         // first words in the two rounds
  std::vector<float> p, q;
  std::vector<bool> dropped;  // columns of p that are no direction of their own
  int64_t steps = 0;
};

class PowerCoding : public Coding {
 public:
  PowerCoding(std::vector<ArenaEntry> parameters, int64_t rank, int workers, uint64_t seed)
      : parameters_(std::move(parameters)), workers_(workers), seed_(seed) {
    int64_t words_p = 0, words_q = 0;
    for (const ArenaEntry& parameter : parameters_) {
      Factors& made = factors_.emplace_back();
      made.first_p = words_p;
      made.first_q = words_q;
      const int64_t size = parameter.range.size();
      made.rows = parameter.shape.empty() ? 1 : parameter.shape[0];
      made.columns = size / std::max<int64_t>(made.rows, 1);
      if (parameter.shape.size() < 2) {
        words_p += size;
        continue;
      }
      made.rank = std::min({rank, made.rows, made.columns});
      words_p += made.rank * made.rows;
      words_q += made.rank * made.columns;
    }
    rounds_ = {{words_p, false}};
    if (words_q > 0) rounds_.push_back({words_q, false});
  }

  const std::vector<Round>& rounds() const override { return rounds_; }

  void Encode(int round, size_t parameter, const float* values, float* words) override {
    Factors& of = factors_[parameter];
    if (of.rank > 0 && of.q.empty()) Begin(parameter);
    if (of.rank == 0) {
      if (round == 0) std::copy_n(values, parameters_[parameter].range.size(), words + of.first_p);
      return;
    }
    if (round == 0) {
      MultiplyRows(of, values, words + of.first_p);
    } else {
      MultiplyColumns(of, values, words + of.first_q);
    }
  }

  void Decode(int round, std::span<const std::span<const float>> parts) override {
    const float* const words = parts[0].data();
    for (size_t i = 0; i < factors_.size(); ++i) {
      Factors& of = factors_[i];
      if (round == 1) {
        std::copy_n(words + of.first_q, of.q.size(), of.q.begin());
      } else if (of.rank == 0) {
        of.p.assign(words + of.first_p, words + of.first_p + parameters_[i].range.size());
      } else {
        std::copy_n(words + of.first_p, of.p.size(), of.p.begin());
        ++of.steps;
        Orthonormalize(of);
      }
    }
  }

  void Finish(size_t parameter, float* values, float* sum) override {
    Factors& of = factors_[parameter];
    const int64_t n = parameters_[parameter].range.size();
    if (of.rank == 0) {
      std::copy_n(of.p.begin(), n, sum);
      std::fill_n(values, n, 0.0f);
      return;
    }
    std::fill_n(sum, n, 0.0f);
    for (int64_t row = 0; row < of.rows; ++row) {
      float* const to = sum + row * of.columns;
      for (int64_t c = 0; c < of.rank; ++c) {
        const float p = of.p[static_cast<size_t>(c * of.rows + row)];
        const float* const q = of.q.data() + c * of.columns;
        for (int64_t column = 0; column < of.columns; ++column) to[column] += p * q[column];
      }
    }
    const float share = 1 / static_cast<float>(workers_);
    for (int64_t i = 0; i < n; ++i) values[i] -= share * sum[i];
    for (int64_t c = 0; c < of.rank; ++c) {
      if (of.dropped[static_cast<size_t>(c)]) Draw(parameter, c);
    }
  }

  void Visit(StateVisitor& visitor) override {
    for (size_t i = 0; i < factors_.size(); ++i) {
      Factors& of = factors_[i];
      if (of.rank == 0) continue;
      int64_t steps = of.q.empty() ? kNotBegun : of.steps;
      visitor.Int("powersgd steps", steps);
      if (steps == kNotBegun) continue;
      if (of.q.empty()) Begin(i);
      of.steps = steps;
      visitor.Floats("powersgd q", of.q);
    }
  }

 private:
  static constexpr int64_t kNotBegun = -1;

  // Makes the factors of a matrix, before its first step; a ghost run has none.
  void Begin(size_t parameter) {
    Factors& of = factors_[parameter];
    of.p.resize(static_cast<size_t>(of.rank * of.rows));
    of.q.resize(static_cast<size_t>(of.rank * of.columns));
    of.dropped.resize(static_cast<size_t>(of.rank));
    for (int64_t c = 0; c < of.rank; ++c) Draw(parameter, c);
  }

  // p = M q, column by column; each is a dot product of a row of M.
  static void MultiplyRows(const Factors& of, const float* values, float* p) {
    for (int64_t row = 0; row < of.rows; ++row) {
      const float* const m = values + row * of.columns;
      for (int64_t c = 0; c < of.rank; ++c) {
        p[c * of.rows + row] = static_cast<float>(Dot(m, of.q.data() + c * of.columns, of.columns));
      }
    }
  }

  // q = M^T p
  static void MultiplyColumns(const Factors& of, const float* values, float* q) {
    std::fill_n(q, of.rank * of.columns, 0.0f);
    for (int64_t row = 0; row < of.rows; ++row) {
      const float* const m = values + row * of.columns;
      for (int64_t c = 0; c < of.rank; ++c) {
        const float p = of.p[static_cast<size_t>(c * of.rows + row)];
        float* const to = q + c * of.columns;
        for (int64_t column = 0; column < of.columns; ++column) to[column] += p * m[column];
      }
    }
  }

  // Gram-Schmidt, twice, so that a column that is nearly in the span of those before is orthogonal to them, too.
  static void Orthonormalize(Factors& of) {
    for (int64_t c = 0; c < of.rank; ++c) {
      float* const column = of.p.data() + c * of.rows;
      const double before = std::sqrt(Dot(column, column, of.rows));
      for (int pass = 0; pass < 2; ++pass) {
        for (int64_t other = 0; other < c; ++other) {
          const float* const direction = of.p.data() + other * of.rows;
          const auto along = static_cast<float>(Dot(column, direction, of.rows));
          for (int64_t i = 0; i < of.rows; ++i) column[i] -= along * direction[i];
        }
      }
      const double length = std::sqrt(Dot(column, column, of.rows));
      const bool dropped = !(length > kNothing * before);
      of.dropped[static_cast<size_t>(c)] = dropped;
      const auto factor = static_cast<float>(dropped ? 0 : 1 / length);
      for (int64_t i = 0; i < of.rows; ++i) column[i] *= factor;
    }
  }

  // Draws a column of q.  The numbers follow from the seed, the parameter's place and the step.
  void Draw(size_t parameter, int64_t c) {
    Factors& of = factors_[parameter];
    const Random random(seed_, Purpose::kLowRank,
                        static_cast<uint64_t>(parameters_[parameter].range.begin),
                        static_cast<uint64_t>(of.steps));
    for (int64_t i = 0; i < of.columns; ++i) {
      const int64_t index = c * of.columns + i;
      of.q[static_cast<size_t>(index)] = random.Normal(static_cast<uint64_t>(index));
    }
  }

  const std::vector<ArenaEntry> parameters_;
  const int workers_;
  const uint64_t seed_;
  std::vector<Round> rounds_;
  std::vector<Factors> factors_;  // by parameter
};

class PowerSgd : public Coder {
 public:
  void Configure(config::Reader& reader, CompressConfig&) override {
    rank_ =
        reader.Int("rank", kRank)
            .Min(1)
            .Help("columns of the two factors of a matrix; no more than its rows and its columns");
  }
  bool MayChange(std::string_view key) const override { return key != "rank"; }
  std::string cost_keys() const override {
    return rank_ == kRank ? "" : fmt::format("rank={}", rank_);
  }
  std::unique_ptr<Coding> MakeCoding(std::vector<ArenaEntry> parameters, int workers,
                                     uint64_t seed) const override {
    return std::make_unique<PowerCoding>(std::move(parameters), rank_, workers, seed);
  }

 private:
  static constexpr int64_t kRank = 4;  // default of the key
  int64_t rank_ = kRank;
};

DTRAIN_COMPRESSOR("powersgd", PowerSgd,
                  "two thin factors of each matrix, summed one after the other; parameters of one "
                  "axis whole (PowerSGD)");

}  // namespace
}  // namespace dtrain
