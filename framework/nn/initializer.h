// Computes the initial values of parameters.  Element i is a pure function of (seed, layer, parameter, i), so the same
// model starts alike on any number of workers.
//
//   constant   value
//   gaussian   normal, mean 0, deviation `value`
//   xavier     uniform in +-sqrt(6 / (fan_in + fan_out))
//              Glorot and Bengio 2010, eq. 16; PyTorch's xavier_uniform_.  Caffe's `xavier` uses
//              fan_in alone: sqrt(3 / fan_in).
//   kaiming    normal, deviation sqrt(2 / fan); fan is fan_in, or fan_out with `mode: fan_out`
//              He et al. 2015, eq. 10; PyTorch's kaiming_normal_; Caffe's `msra`.
#pragma once

#include <cstdint>

#include "framework/config/reader.h"
#include "framework/nn/layer.h"

namespace dtrain {

// Reads a section such as weight_init: {name: gaussian, value: 0.01}, or weight_init: kaiming.
InitSpec ReadInitSpec(config::Reader reader, const InitSpec& default_spec);

// Writes param.shape.count() elements.  layer_index and param_index key the random numbers.
void Initialize(const ParamSpec& param, uint64_t seed, uint64_t layer_index, uint64_t param_index,
                float* out);

}  // namespace dtrain
