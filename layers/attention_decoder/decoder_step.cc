#include "layers/attention_decoder/decoder_step.h"

#include "framework/kernels/cpu/gru_cell.h"
#include "framework/kernels/cpu/packed_gemm.h"

namespace dtrain {
namespace {

using P = AttentionDecoder;

// Packs rows [k_begin, k_begin + count) of B from W [n, .], columns from `w` on.
void PackShare(Isa isa, PackSource source, float* packed, int thread, int team) {
  const Range panels = SplitEvenly({0, PanelsOf(source.n)}, team, thread);
  DTRAIN_ISA_SELECT(isa, PackPanels)(source, packed, panels.begin, panels.end);
}

}  // namespace

DecoderSizes DecoderSizes::Of(const AttentionDecoder& layer, const Shape& encoder_outputs) {
  return {layer.hidden(),    encoder_outputs[2], layer.embedding(),
          layer.attention(), layer.vocabulary(), encoder_outputs[1]};
}

int64_t DecoderWeights::RoomFloats(const DecoderSizes& s) {
  return PackedFloats(s.A, s.C) + PackedFloats(s.A, s.H) + PackedFloats(3 * s.H, s.C + s.E) +
         PackedFloats(3 * s.H, s.H) + PackedFloats(s.V, s.features());
}

DecoderWeights DecoderWeights::Bind(const DecoderSizes& s, const KernelArgs& args, float* room) {
  DecoderWeights w{};
  w.sizes = s;
  w.keys_bias = args.params[P::kAttnBias].f32();
  w.v = args.params[P::kV].f32();
  w.embedding = args.params[P::kEmbedding].f32();
  w.bias_in = args.params[P::kBiasIn].f32();
  w.bias_state = args.params[P::kBiasState].f32();
  w.out_bias = args.params[P::kOutBias].f32();
  w.keys = room;
  w.query = w.keys + PackedFloats(s.A, s.C);
  w.in = w.query + PackedFloats(s.A, s.H);
  w.state = w.in + PackedFloats(3 * s.H, s.C + s.E);
  w.out = w.state + PackedFloats(3 * s.H, s.H);
  return w;
}

void DecoderWeights::Pack(Isa isa, const KernelArgs& args, int thread, int team) const {
  const auto [H, C, E, A, V, S] = sizes;
  const float* const attn = args.params[P::kAttnWeight].f32();
  const float* const in_weight = args.params[P::kWeightIn].f32();
  PackShare(isa, {attn + H, H + C, false, A, C, 0, C}, keys, thread, team);
  PackShare(isa, {attn, H + C, false, A, H, 0, H}, query, thread, team);
  PackShare(isa, {in_weight + E, E + C, false, 3 * H, C + E, 0, C}, in, thread, team);
  PackShare(isa, {in_weight, E + C, false, 3 * H, C + E, C, E}, in, thread, team);
  PackShare(isa, {args.params[P::kWeightState].f32(), H, false, 3 * H, H, 0, H}, state, thread,
            team);
  const int64_t F = sizes.features();
  PackShare(isa, {args.params[P::kOutWeight].f32(), F, false, V, F, 0, F}, out, thread, team);
}

void DecoderWeights::Keys(Isa isa, const float* encoder_outputs, int64_t rows, float* to) const {
  const PackedProduct product = {.a = encoder_outputs,
                                 .a_stride = sizes.C,
                                 .packed = keys,
                                 .bias = keys_bias,
                                 .c = to,
                                 .c_stride = sizes.A,
                                 .m = rows,
                                 .n = sizes.A,
                                 .k = sizes.C};
  DTRAIN_ISA_SELECT(isa, MultiplyPacked)(product, 0, PanelsOf(sizes.A));
}

Range DecoderWeights::all_panels() const { return {0, PanelsOf(sizes.V)}; }

void DecoderWeights::Logits(Isa isa, const float* features, int64_t stride, int64_t rows,
                            Range panels, float* to, int64_t to_stride) const {
  const PackedProduct product = {.a = features,
                                 .a_stride = stride,
                                 .packed = out,
                                 .bias = out_bias,
                                 .c = to,
                                 .c_stride = to_stride,
                                 .m = rows,
                                 .n = sizes.V,
                                 .k = sizes.features()};
  DTRAIN_ISA_SELECT(isa, MultiplyPacked)(product, panels.begin, panels.end);
}

Attention AttentionOf(const DecoderSizes& s, const float* v, const DecoderRows& r, int64_t row) {
  const int64_t sentence = r.sentence[row];
  return {.keys = r.keys + sentence * s.S * s.A,
          .values = r.values + sentence * s.S * s.C,
          .query = r.query + row * r.query_stride,
          .v = v,
          .length = r.lengths[sentence],
          .source = s.S,
          .size = s.A,
          .context_size = s.C};
}

void DecoderStep(Isa isa, const DecoderWeights& w, const DecoderRows& r) {
  const auto [H, C, E, A, V, S] = w.sizes;
  const auto multiply = [&](const PackedProduct& product) {
    DTRAIN_ISA_SELECT(isa, MultiplyPacked)(product, 0, PanelsOf(product.n));
  };
  multiply({.a = r.state_before,
            .a_stride = r.state_stride,
            .packed = w.query,
            .bias = nullptr,
            .c = r.query,
            .c_stride = r.query_stride,
            .m = r.rows,
            .n = A,
            .k = H});
  for (int64_t i = 0; i < r.rows; ++i) {
    DTRAIN_ISA_SELECT(isa, Attend)
    (AttentionOf(w.sizes, w.v, r, i), r.weights + i * r.weights_stride,
     r.features + i * r.features_stride + H);
  }
  multiply({.a = r.features + H,
            .a_stride = r.features_stride,
            .packed = w.in,
            .bias = w.bias_in,
            .c = r.gates,
            .c_stride = r.gates_stride,
            .m = r.rows,
            .n = 3 * H,
            .k = C + E});
  multiply({.a = r.state_before,
            .a_stride = r.state_stride,
            .packed = w.state,
            .bias = w.bias_state,
            .c = r.from_state,
            .c_stride = 3 * H,
            .m = r.rows,
            .n = 3 * H,
            .k = H});
  for (int64_t i = 0; i < r.rows; ++i) {
    DTRAIN_ISA_SELECT(isa, GruForward)
    (r.gates + i * r.gates_stride, r.from_state + i * 3 * H, r.state_before + i * r.state_stride, H,
     r.features + i * r.features_stride);
  }
}

}  // namespace dtrain
