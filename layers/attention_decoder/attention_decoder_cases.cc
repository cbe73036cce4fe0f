// Implements the attention decoder in plain loops, one sentence after the other, as the reference
// for the tests.
#include <algorithm>
#include <cmath>
#include <vector>

#include "framework/nn/layer_case.h"
#include "layers/attention_decoder/attention_decoder.h"

namespace dtrain {
namespace {

class AttentionDecoderReference : public LayerReference {
 public:
  void Forward(const Layer& layer, RefArgs& args) const override {
    for (int64_t n = 0; n < args.inputs[3].shape[0]; ++n) {
      Sentence(static_cast<const AttentionDecoder&>(layer), args, n).Forward();
    }
  }

  void Backward(const Layer& layer, RefArgs& args) const override {
    for (int64_t n = 0; n < args.inputs[3].shape[0]; ++n) {
      Sentence sentence(static_cast<const AttentionDecoder&>(layer), args, n);
      sentence.Forward();
      sentence.Backward();
    }
  }

 private:
  using P = AttentionDecoder;
  using Vector = std::vector<double>;

  // Holds the results of one step.
  struct Step {
    int64_t token;
    Vector before, e, a, c, from_x, from_h, s;
    std::vector<Vector> energy;
  };

  class Sentence {
   public:
    Sentence(const AttentionDecoder& layer, RefArgs& args, int64_t n)
        : layer_(layer),
          args_(args),
          n_(n),
          H(layer.hidden()),
          E(layer.embedding()),
          A(layer.attention()),
          V(layer.vocabulary()),
          C(args.inputs[0].shape[2]),
          S(args.inputs[0].shape[1]),
          T(args.inputs[3].shape[1]) {
      while (length_ < S && args.inputs[2].values[n * S + length_] != layer.pad()) ++length_;
    }

    void Forward() {
      const double* s0 = &args_.inputs[1].values[n_ * H];
      Vector s(s0, s0 + H);
      for (int64_t t = 0; t < T; ++t) {
        Step step;
        step.before = s;
        step.token = TokenAt(t);
        step.e = Embed(t, Row(P::kEmbedding, step.token, E));
        Attend(step);
        Recur(step);
        s = step.s;
        const Vector y = Affine(P::kOutWeight, P::kOutBias, Join({step.s, step.c, step.e}));
        std::copy(y.begin(), y.end(), &args_.outputs[0].values[(n_ * T + t) * V]);
        steps_.push_back(std::move(step));
      }
    }

    void Backward() {
      Vector ds(H);
      for (int64_t t = T - 1; t >= 0; --t) {
        const Step& step = steps_[t];
        const double* dy = &args_.output_gradients[0].values[(n_ * T + t) * V];
        const Vector f = AffineBackward(P::kOutWeight, P::kOutBias, Join({step.s, step.c, step.e}),
                                        Vector(dy, dy + V));
        for (int64_t i = 0; i < H; ++i) ds[i] += f[i];
        Vector dc(f.begin() + H, f.begin() + H + C), de(f.begin() + H + C, f.end());
        ds = RecurBackward(step, ds, dc, de);
        AttendBackward(step, dc, ds);
        de = Embed(t, de);
        for (int64_t i = 0; i < E; ++i) Gradient(P::kEmbedding)[step.token * E + i] += de[i];
      }
      for (int64_t i = 0; i < H; ++i) args_.input_gradients[1].values[n_ * H + i] += ds[i];
    }

   private:
    const Vector& Param(int which) const { return args_.params[which].values; }
    Vector& Gradient(int which) const { return args_.param_gradients[which].values; }
    Vector Row(int which, int64_t row, int64_t size) const {
      const double* from = &Param(which)[row * size];
      return Vector(from, from + size);
    }
    Vector Value(int64_t j) const {  // h_j
      const double* from = &args_.inputs[0].values[(n_ * S + j) * C];
      return Vector(from, from + C);
    }
    static Vector Join(const std::vector<Vector>& parts) {
      Vector whole;
      for (const Vector& part : parts) whole.insert(whole.end(), part.begin(), part.end());
      return whole;
    }
    Vector Affine(int weight, int bias, const Vector& x) const {
      Vector y = Param(bias);
      for (size_t o = 0; o < y.size(); ++o) {
        for (size_t i = 0; i < x.size(); ++i) y[o] += Param(weight)[o * x.size() + i] * x[i];
      }
      return y;
    }
    // Adds to the gradients of weight and bias; returns W^T dy.
    Vector AffineBackward(int weight, int bias, const Vector& x, const Vector& dy) const {
      Vector dx(x.size());
      for (size_t o = 0; o < dy.size(); ++o) {
        Gradient(bias)[o] += dy[o];
        for (size_t i = 0; i < x.size(); ++i) {
          Gradient(weight)[o * x.size() + i] += dy[o] * x[i];
          dx[i] += dy[o] * Param(weight)[o * x.size() + i];
        }
      }
      return dx;
    }

    int64_t TokenAt(int64_t t) const {
      const bool training = args_.mode == Mode::kTrain;
      if (t == 0 || (training && TeacherForces(layer_.teacher_forcing(), args_.seed,
                                               args_.layer_index, args_.step, t))) {
        return static_cast<int64_t>(args_.inputs[3].values[n_ * T + t]);
      }
      const double* y = &args_.outputs[0].values[(n_ * T + t - 1) * V];
      return std::max_element(y, y + V) - y;
    }

    // Applies dropout; forward and backward are the same operation.
    Vector Embed(int64_t t, Vector e) const {
      if (args_.mode == Mode::kEvaluate) return e;
      const Random random =
          DecoderDropout(args_.seed, args_.layer_index, args_.step, args_.first_position + n_, t);
      const auto threshold = static_cast<uint32_t>(layer_.dropout() * 0x1p32);
      for (int64_t i = 0; i < E; ++i) {
        e[i] = random.Bits(i) < threshold ? 0 : e[i] / (1 - layer_.dropout());
      }
      return e;
    }

    void Attend(Step& step) const {
      step.a.resize(length_);
      step.c.resize(C);
      double sum = 0;
      for (int64_t j = 0; j < length_; ++j) {
        Vector energy = Affine(P::kAttnWeight, P::kAttnBias, Join({step.before, Value(j)}));
        double score = 0;
        for (int64_t i = 0; i < A; ++i) {
          energy[i] = std::tanh(energy[i]);
          score += Param(P::kV)[i] * energy[i];
        }
        step.energy.push_back(energy);
        sum += step.a[j] = std::exp(score);
      }
      for (int64_t j = 0; j < length_; ++j) {
        step.a[j] /= sum;
        for (int64_t i = 0; i < C; ++i) step.c[i] += step.a[j] * Value(j)[i];
      }
    }

    // Adds the part of the gradient that flows to the previous state through the attention to ds.
    void AttendBackward(const Step& step, const Vector& dc, Vector& ds) const {
      Vector da(length_);
      double mean = 0;
      for (int64_t j = 0; j < length_; ++j) {
        for (int64_t i = 0; i < C; ++i) da[j] += dc[i] * Value(j)[i];
        mean += step.a[j] * da[j];
      }
      for (int64_t j = 0; j < length_; ++j) {
        const double dscore = step.a[j] * (da[j] - mean);
        Vector dpre(A);
        for (int64_t i = 0; i < A; ++i) {
          const double energy = step.energy[j][i];
          Gradient(P::kV)[i] += dscore * energy;
          dpre[i] = dscore * Param(P::kV)[i] * (1 - energy * energy);
        }
        const Vector dx =
            AffineBackward(P::kAttnWeight, P::kAttnBias, Join({step.before, Value(j)}), dpre);
        for (int64_t i = 0; i < H; ++i) ds[i] += dx[i];
        for (int64_t i = 0; i < C; ++i) {
          args_.input_gradients[0].values[(n_ * S + j) * C + i] += dx[H + i] + step.a[j] * dc[i];
        }
      }
    }

    static double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
    double R(const Step& p, int64_t i) const { return Sigmoid(p.from_x[i] + p.from_h[i]); }
    double Z(const Step& p, int64_t i) const { return Sigmoid(p.from_x[H + i] + p.from_h[H + i]); }
    double New(const Step& p, int64_t i) const {
      return std::tanh(p.from_x[2 * H + i] + R(p, i) * p.from_h[2 * H + i]);
    }

    void Recur(Step& step) const {
      step.from_x = Affine(P::kWeightIn, P::kBiasIn, Join({step.e, step.c}));
      step.from_h = Affine(P::kWeightState, P::kBiasState, step.before);
      for (int64_t i = 0; i < H; ++i) {
        const double z = Z(step, i);
        step.s.push_back((1 - z) * New(step, i) + z * step.before[i]);
      }
    }

    // Adds to dc and de; returns the gradient by the previous state.
    Vector RecurBackward(const Step& p, const Vector& ds, Vector& dc, Vector& de) const {
      Vector dx(3 * H), dh(3 * H), direct(H);
      for (int64_t i = 0; i < H; ++i) {
        const double r = R(p, i), z = Z(p, i), n = New(p, i);
        dx[2 * H + i] = ds[i] * (1 - z) * (1 - n * n);
        dh[2 * H + i] = dx[2 * H + i] * r;
        dx[i] = dh[i] = dx[2 * H + i] * p.from_h[2 * H + i] * r * (1 - r);
        dx[H + i] = dh[H + i] = ds[i] * (p.before[i] - n) * z * (1 - z);
        direct[i] = ds[i] * z;
      }
      const Vector in = AffineBackward(P::kWeightIn, P::kBiasIn, Join({p.e, p.c}), dx);
      const Vector state = AffineBackward(P::kWeightState, P::kBiasState, p.before, dh);
      for (int64_t i = 0; i < E; ++i) de[i] += in[i];
      for (int64_t i = 0; i < C; ++i) dc[i] += in[E + i];
      for (int64_t i = 0; i < H; ++i) direct[i] += state[i];
      return direct;
    }

    const AttentionDecoder& layer_;
    RefArgs& args_;
    const int64_t n_, H, E, A, V, C, S, T;
    int64_t length_ = 0;  // of the source sentence
    std::vector<Step> steps_;
  };
};

// Rounding errors accumulate over the steps, so the tolerance is larger.
constexpr double kTolerance = 12;

struct Sizes {
  int64_t N, S, T, C, H, V;
};

// Central differences lose digits in sums of many terms, so only small cases are checked with them.
LayerCase Case(const std::string& name, const std::string& yaml, const Sizes& s) {
  return {.name = name,
          .yaml = yaml,
          .inputs = {{s.N, s.S, s.C}, {s.N, s.H}, {s.N, s.S}, {s.N, s.T}},
          .central_differences = s.C < 30,
          .tolerance = kTolerance,
          .input_classes = {0, 0, 9, s.V}};
}

DTRAIN_LAYER_CASES(
    "attention_decoder", AttentionDecoderReference,
    {Case("one step", "{hidden: 3, embedding: 2}", {2, 3, 1, 4, 3, 7}),
     Case("always taught", "{hidden: 4, embedding: 3, teacher_forcing: 1}", {3, 4, 5, 6, 4, 11}),
     Case("never taught", "{hidden: 4, embedding: 3, teacher_forcing: 0}", {3, 4, 5, 6, 4, 11}),
     Case("coins and dropout", "{hidden: 5, embedding: 6, attention: 7, dropout: 0.5}",
          {4, 5, 6, 4, 5, 13}),
     Case("one place to look at", "{hidden: 3, embedding: 2}", {3, 1, 3, 4, 3, 7}),
     Case("another pad", "{hidden: 3, embedding: 2, pad: 0}", {4, 3, 3, 4, 3, 8}),
     Case("wider than a panel", "{hidden: 20, embedding: 18, attention: 19}",
          {9, 3, 4, 34, 20, 61}),
     // Its products have factors in packs of eight.
     Case("whole packs", "{hidden: 8, embedding: 16, attention: 8}", {5, 3, 4, 8, 8, 24}),
     Case("whole packs with dropout", "{hidden: 8, embedding: 16, attention: 8, dropout: 0.5}",
          {5, 3, 4, 8, 8, 24})});

}  // namespace
}  // namespace dtrain
