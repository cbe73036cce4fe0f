// Implements the reference of layer_norm and group_norm (row_norm_layer.h) in plain loops, for
// their cases.
#pragma once

#include <cmath>

#include "framework/nn/layer_case.h"
#include "framework/nn/row_norm_layer.h"

namespace dtrain {

class RowNormReference : public LayerReference {
 public:
  void Forward(const Layer& layer, RefArgs& args) const override {
    const Norm norm(layer, args);
    ForEachRow(norm, [&](int64_t begin) {
      const Row row = RowAt(norm, args, begin);
      for (int64_t i = begin; i < begin + norm.rows.size(); ++i) {
        const double bias = norm.affine ? args.params[1].values[norm.rows.ParameterOf(i)] : 0;
        args.outputs[0].values[i] = norm.Weight(args, i) * row.Z(args, i) + bias;
      }
    });
  }

  void Backward(const Layer& layer, RefArgs& args) const override {
    const Norm norm(layer, args);
    const auto size = static_cast<double>(norm.rows.size());
    ForEachRow(norm, [&](int64_t begin) {
      const Row row = RowAt(norm, args, begin);
      const auto d = [&](int64_t i) {
        return args.output_gradients[0].values[i] * norm.Weight(args, i);
      };
      double mean = 0, mean_z = 0;
      for (int64_t i = begin; i < begin + norm.rows.size(); ++i) {
        mean += d(i) / size;
        mean_z += d(i) * row.Z(args, i) / size;
      }
      for (int64_t i = begin; i < begin + norm.rows.size(); ++i) {
        args.input_gradients[0].values[i] = (d(i) - mean - row.Z(args, i) * mean_z) * row.inverse;
        if (!norm.affine) continue;
        const double dy = args.output_gradients[0].values[i];
        args.param_gradients[0].values[norm.rows.ParameterOf(i)] += dy * row.Z(args, i);
        args.param_gradients[1].values[norm.rows.ParameterOf(i)] += dy;
      }
    });
  }

 private:
  struct Norm {
    NormRows rows;
    double eps;
    bool affine;

    Norm(const Layer& layer, const RefArgs& args)
        : rows(static_cast<const RowNormLayer&>(layer).RowsOf(args.inputs[0].shape)),
          eps(static_cast<const RowNormLayer&>(layer).eps()),
          affine(static_cast<const RowNormLayer&>(layer).affine()) {}
    double Weight(const RefArgs& args, int64_t i) const {
      return affine ? args.params[0].values[rows.ParameterOf(i)] : 1;
    }
  };

  struct Row {
    double mean = 0, inverse = 0;
    double Z(const RefArgs& args, int64_t i) const {
      return (args.inputs[0].values[i] - mean) * inverse;
    }
  };

  static Row RowAt(const Norm& norm, const RefArgs& args, int64_t begin) {
    const auto& x = args.inputs[0].values;
    const auto size = static_cast<double>(norm.rows.size());
    Row row;
    double variance = 0;
    for (int64_t i = begin; i < begin + norm.rows.size(); ++i) row.mean += x[i] / size;
    for (int64_t i = begin; i < begin + norm.rows.size(); ++i) {
      variance += (x[i] - row.mean) * (x[i] - row.mean) / size;
    }
    row.inverse = 1 / std::sqrt(variance + norm.eps);
    return row;
  }

  template <class Body>
  static void ForEachRow(const Norm& norm, const Body& body) {
    for (int64_t r = 0; r < norm.rows.rows; ++r) body(r * norm.rows.size());
  }
};

}  // namespace dtrain
