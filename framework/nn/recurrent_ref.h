// The reference of recurrent layers in plain loops, and their test cases; each layer supplies its cell (gru_cases.cc,
// lstm_cases.cc).
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "framework/core/random.h"
#include "framework/nn/layer_case.h"
#include "framework/nn/recurrent_layer.h"

namespace dtrain {

// Inputs and outputs of one step of one sample.
struct RefCellStep {
  std::vector<double> from_x, from_h;  // W_i x + b_i, W_h h0 + b_h
  std::vector<double> h0, c0, h, c;    // c: the LSTM's cell state, unused by the GRU
};

struct RefCellGradients {
  std::vector<double> from_x, from_h, h0, c0;  // h0: the part that does not go through W_h
};

class RecurrentReference : public LayerReference {
 public:
  void Forward(const Layer& layer, RefArgs& args) const override {
    args.outputs[0].values = Run(Of(layer), args).back().y;
  }

  void Backward(const Layer& layer, RefArgs& args) const override {
    const RecurrentLayer& recurrent = Of(layer);
    const std::vector<Trace> traces = Run(recurrent, args);
    std::vector<double> dy = args.output_gradients[0].values;
    for (int64_t k = recurrent.layers() - 1; k >= 0; --k) {
      if (k + 1 < recurrent.layers()) Drop(recurrent, args, k, dy);
      std::vector<double> dx(traces[k].x.size());
      for (int64_t d = 0; d < recurrent.directions(); ++d) {
        for (int64_t n = 0; n < args.inputs[0].shape[0]; ++n) {
          BackwardPass({recurrent, args, k, d, n}, traces[k], dy, dx);
        }
      }
      dy = dx;
    }
    args.input_gradients[0].values = dy;
  }

 protected:
  static double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

  virtual void Step(RefCellStep& step) const = 0;
  virtual RefCellGradients StepBackward(const RefCellStep& step, const std::vector<double>& dh,
                                        const std::vector<double>& dc) const = 0;

 private:
  using Part = RecurrentLayer::Part;

  // Holds one layer's input, its output before dropout, and its steps by (d, n, t).
  struct Trace {
    std::vector<double> x, y;
    std::vector<RefCellStep> steps;
  };

  // Describes one pass over one sample.
  struct Pass {
    const RecurrentLayer& layer;
    RefArgs& args;
    int64_t k, d, n;

    int64_t H() const { return layer.hidden(); }
    int64_t T() const { return args.inputs[0].shape[1]; }
    int64_t I() const { return layer.InputsOf(k, args.inputs[0].shape[2]); }
    int64_t Y(int64_t t) const {  // index in y of this pass's state at step t
      return ((n * T() + t) * layer.directions() + d) * H();
    }
    int64_t StepIndex(int64_t t) const { return (d * args.inputs[0].shape[0] + n) * T() + t; }
    int64_t Length() const {
      int64_t t = 0;
      while (t < T() && args.inputs[1].values[n * T() + t] != layer.pad()) ++t;
      return t;
    }
    int64_t At(int64_t i) const { return d == 0 ? i : Length() - 1 - i; }  // i-th step of the pass
    const std::vector<double>& Param(Part part) const {
      return args.params[layer.ParamOf(k, d, part)].values;
    }
    std::vector<double>& Gradient(Part part) const {
      return args.param_gradients[layer.ParamOf(k, d, part)].values;
    }
  };

  static const RecurrentLayer& Of(const Layer& layer) {
    return static_cast<const RecurrentLayer&>(layer);
  }

  std::vector<Trace> Run(const RecurrentLayer& layer, RefArgs& args) const {
    std::vector<Trace> traces;
    const Shape& x = args.inputs[0].shape;
    for (int64_t k = 0; k < layer.layers(); ++k) {
      Trace trace;
      trace.x = k == 0 ? args.inputs[0].values : traces.back().y;
      if (k > 0) Drop(layer, args, k - 1, trace.x);
      trace.y.resize(x[0] * x[1] * layer.directions() * layer.hidden());
      trace.steps.resize(layer.directions() * x[0] * x[1]);
      for (int64_t d = 0; d < layer.directions(); ++d) {
        for (int64_t n = 0; n < x[0]; ++n) ForwardPass({layer, args, k, d, n}, trace);
      }
      traces.push_back(std::move(trace));
    }
    return traces;
  }

  // Returns w v + b for w of shape [rows, columns].
  static std::vector<double> Affine(const std::vector<double>& w, const std::vector<double>& b,
                                    const double* v, int64_t columns) {
    std::vector<double> y = b;
    for (size_t o = 0; o < y.size(); ++o) {
      for (int64_t i = 0; i < columns; ++i) y[o] += w[o * columns + i] * v[i];
    }
    return y;
  }

  void ForwardPass(const Pass& p, Trace& trace) const {
    std::vector<double> h(p.H()), c(p.H());
    for (int64_t i = 0; i < p.Length(); ++i) {
      const int64_t t = p.At(i);
      RefCellStep& step = trace.steps[p.StepIndex(t)];
      const double* x = &trace.x[(p.n * p.T() + t) * p.I()];
      step.from_x = Affine(p.Param(Part::kWeightIn), p.Param(Part::kBiasIn), x, p.I());
      step.from_h = Affine(p.Param(Part::kWeightState), p.Param(Part::kBiasState), h.data(), p.H());
      step.h0 = h;
      step.c0 = c;
      Step(step);
      h = step.h;
      c = step.c;
      for (int64_t j = 0; j < p.H(); ++j) trace.y[p.Y(t) + j] = h[j];
    }
  }

  // Adds to dW, db and returns W^T g.
  static std::vector<double> AffineBackward(const std::vector<double>& w, const double* v,
                                            int64_t columns, const std::vector<double>& g,
                                            std::vector<double>& dw, std::vector<double>& db) {
    std::vector<double> dv(columns);
    for (size_t o = 0; o < g.size(); ++o) {
      db[o] += g[o];
      for (int64_t i = 0; i < columns; ++i) {
        dw[o * columns + i] += g[o] * v[i];
        dv[i] += g[o] * w[o * columns + i];
      }
    }
    return dv;
  }

  void BackwardPass(const Pass& p, const Trace& trace, const std::vector<double>& dy,
                    std::vector<double>& dx) const {
    std::vector<double> dh(p.H()), dc(p.H());
    for (int64_t i = p.Length() - 1; i >= 0; --i) {
      const int64_t t = p.At(i);
      const RefCellStep& step = trace.steps[p.StepIndex(t)];
      for (int64_t j = 0; j < p.H(); ++j) dh[j] += dy[p.Y(t) + j];
      const RefCellGradients g = StepBackward(step, dh, dc);
      const int64_t at = (p.n * p.T() + t) * p.I();
      const std::vector<double> from_x =
          AffineBackward(p.Param(Part::kWeightIn), &trace.x[at], p.I(), g.from_x,
                         p.Gradient(Part::kWeightIn), p.Gradient(Part::kBiasIn));
      for (int64_t j = 0; j < p.I(); ++j) dx[at + j] += from_x[j];
      dh = AffineBackward(p.Param(Part::kWeightState), step.h0.data(), p.H(), g.from_h,
                          p.Gradient(Part::kWeightState), p.Gradient(Part::kBiasState));
      for (int64_t j = 0; j < p.H(); ++j) dh[j] += g.h0[j];
      dc = g.c0;
    }
  }

  // Applies dropout to layer k's output, as the next layer reads it.
  static void Drop(const RecurrentLayer& layer, const RefArgs& args, int64_t k,
                   std::vector<double>& y) {
    if (args.mode == Mode::kEvaluate) return;
    const auto threshold = static_cast<uint32_t>(layer.dropout() * 0x1p32);
    const int64_t size = args.inputs[0].shape[1] * layer.directions() * layer.hidden();
    for (int64_t n = 0; n < args.inputs[0].shape[0]; ++n) {
      const Random random(args.seed, Purpose::kDropout, args.layer_index + ((k + 1) << 16),
                          (args.step << 20) + args.first_position + n);
      for (int64_t i = 0; i < size; ++i) {
        double& value = y[n * size + i];
        value = random.Bits(i) < threshold ? 0 : value / (1 - layer.dropout());
      }
    }
  }
};

// Returns the cases for DTRAIN_LAYER_CASES.
inline std::vector<LayerCase> RecurrentCases() {
  const auto of = [](const std::string& name, const std::string& yaml, int64_t N, int64_t T,
                     int64_t I) {
    // Each step rounds several functions, and errors accumulate.
    constexpr double kTolerance = 8;
    return LayerCase{.name = name,
                     .yaml = yaml,
                     .inputs = {{N, T, I}, {N, T}},
                     .tolerance = kTolerance,
                     .input_classes = {0, 9}};
  };
  return {of("one step", "{hidden: 3}", 2, 1, 2), of("sentences", "{hidden: 5}", 4, 6, 3),
          of("both ways", "{hidden: 4, bidirectional: true}", 5, 5, 7),
          of("two layers", "{hidden: 3, layers: 2}", 3, 4, 5),
          of("two layers both ways with dropout",
             "{hidden: 3, layers: 2, bidirectional: true, dropout: 0.4}", 3, 4, 2),
          of("another pad", "{hidden: 3, pad: 0}", 3, 4, 2),
          of("wider than a panel", "{hidden: 37, bidirectional: true}", 9, 3, 20),
          // Its products have factors in packs of eight.
          of("whole packs", "{hidden: 8, layers: 2, bidirectional: true}", 3, 4, 8),
          of("whole packs with dropout", "{hidden: 8, layers: 2, dropout: 0.4}", 3, 4, 8)};
}

}  // namespace dtrain
