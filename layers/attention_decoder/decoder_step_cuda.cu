#include "layers/attention_decoder/decoder_step_cuda.h"

#include <array>

#include "framework/kernels/cuda/cells.h"
#include "framework/kernels/cuda/rows.h"

namespace dtrain {

using P = AttentionDecoder;

namespace {

// A parameter that is a factor of products in every step.
struct Factor {
  P::Param param;
  int64_t rows, columns;
};

std::array<Factor, 4> FactorsOf(const DecoderSizes& s) {
  return {{{P::kAttnWeight, s.A, s.H + s.C},
           {P::kWeightIn, 3 * s.H, s.E + s.C},
           {P::kWeightState, 3 * s.H, s.H},
           {P::kOutWeight, s.V, s.features()}}};
}

}  // namespace

DecoderParams DecoderParams::Of(const DecoderSizes& s, std::span<const Tensor> params,
                                const CudaQueue* queue, float* rounded) {
  std::array<DeviceMatrix, 4> factors;
  for (size_t i = 0; i < factors.size(); ++i) {
    const auto [param, rows, columns] = FactorsOf(s)[i];
    factors[i] = DeviceMatrix::Dense(params[param].f32(), rows, columns);
    if (queue == nullptr) continue;
    factors[i] = ToRoundIn(*queue, factors[i], rounded);
    rounded += dtrain::RoomToRound(*queue, rows * columns);
  }
  const auto& [attn, in, state, out] = factors;
  return {.sizes = s,
          .query = attn.Columns(0, s.H),
          .keys = attn.Columns(s.H, s.C),
          .embedding = DeviceMatrix::Dense(params[P::kEmbedding].f32(), s.V, s.E),
          .embedded = in.Columns(0, s.E),
          .context = in.Columns(s.E, s.C),
          .state = state,
          .out = out,
          .keys_bias = params[P::kAttnBias].f32(),
          .v = params[P::kV].f32(),
          .bias_in = params[P::kBiasIn].f32(),
          .bias_state = params[P::kBiasState].f32(),
          .out_bias = params[P::kOutBias].f32()};
}

int64_t DecoderParams::RoomToRound(const CudaQueue& queue, const DecoderSizes& s) {
  int64_t floats = 0;
  for (const Factor& factor : FactorsOf(s)) {
    floats += dtrain::RoomToRound(queue, factor.rows * factor.columns);
  }
  return floats;
}

void DecoderParams::Round(CudaQueue& queue) const {
  for (const DeviceMatrix& factor : {query, keys, embedded, context, state, out}) {
    RoundOnce(queue, factor);
  }
}

void DecoderKeys(CudaQueue& queue, const DecoderParams& params, const DeviceMatrix& encoder_outputs,
                 const DeviceMatrix& keys) {
  FillRows(queue, params.keys_bias, keys);
  Multiply(queue, encoder_outputs, params.keys, keys, {.transpose_b = true, .add = true});
}

void DecoderStep(CudaQueue& queue, const DecoderParams& params, const DecoderRowsCuda& r) {
  const DecoderSizes& s = params.sizes;
  const int64_t rows = r.features.rows;
  const DeviceMatrix state = r.features.Columns(0, s.H), context = r.features.Columns(s.H, s.C);
  Multiply(queue, r.state_before, params.query, r.attention.query, {.transpose_b = true});
  Attend(queue, r.attention, r.sums, context);
  const DeviceMatrix in = r.gates.Columns(0, 3 * s.H);
  Multiply(queue, context, params.context, in, {.transpose_b = true});
  Multiply(queue, r.features.Columns(s.H + s.C, s.E), params.embedded, in,
           {.transpose_b = true, .add = true});
  Multiply(queue, r.state_before, params.state, DeviceMatrix::Dense(r.from_state, rows, 3 * s.H),
           {.transpose_b = true});
  ForwardCells<GruCell>(queue, {.samples = rows,
                                .hidden = s.H,
                                .row = r.gates.data,
                                .row_stride = r.gates.stride,
                                .state_before = r.state_before.data,
                                .before_stride = r.state_before.stride,
                                .state = state.data,
                                .state_stride = state.stride,
                                .state_copy = CopyOf(queue, state),
                                .from_state = r.from_state,
                                .bias_in = params.bias_in,
                                .bias_state = params.bias_state});
}

void DecoderLogits(CudaQueue& queue, const DecoderParams& params, const DeviceMatrix& features,
                   const DeviceMatrix& logits) {
  FillRows(queue, params.out_bias, logits);
  Multiply(queue, features, params.out, logits, {.transpose_b = true, .add = true});
}

}  // namespace dtrain
