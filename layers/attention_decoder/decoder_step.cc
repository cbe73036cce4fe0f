#include "layers/attention_decoder/decoder_step.h"

#include "framework/kernels/cpu/loops.h"
#include "framework/kernels/cpu/packed_gemm.h"

namespace dtrain {
namespace {

using P = AttentionDecoder;

void PackShare(Isa isa, const PackSource& source, float* packed, int thread, int team) {
  const Range panels = SplitEvenly({0, PanelsOf(source.n())}, team, thread);
  DTRAIN_ISA_SELECT(isa, PackPanels)(source, packed, panels.begin, panels.end);
}

}  // namespace

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
  w.keys_weight = room;
  w.query = w.keys_weight + PackedFloats(s.A, s.C);
  w.in = w.query + PackedFloats(s.A, s.H);
  w.state = w.in + PackedFloats(3 * s.H, s.C + s.E);
  w.out = w.state + PackedFloats(3 * s.H, s.H);
  return w;
}

void DecoderWeights::Pack(Isa isa, const KernelArgs& args, int thread, int team) const {
  const auto [H, C, E, A, V, S] = sizes;
  const auto param = [&](P::Param which, int64_t rows, int64_t columns) {
    return ConstMatrix::Dense(args.params[which].f32(), rows, columns);
  };
  const auto pack = [&](const PackSource& source, float* to) {
    PackShare(isa, source, to, thread, team);
  };
  const ConstMatrix attn = param(P::kAttnWeight, A, H + C);
  const ConstMatrix in_weight = param(P::kWeightIn, 3 * H, E + C);
  pack(PackSource::Whole(attn.Columns(H, C)), keys_weight);
  pack(PackSource::Whole(attn.Columns(0, H)), query);
  pack({.weights = in_weight.Columns(E, C), .k = C + E, .k_begin = 0}, in);
  pack({.weights = in_weight.Columns(0, E), .k = C + E, .k_begin = C}, in);
  pack(PackSource::Whole(param(P::kWeightState, 3 * H, H)), state);
  pack(PackSource::Whole(param(P::kOutWeight, V, sizes.features())), out);
}

void DecoderWeights::Keys(Isa isa, const ConstMatrix& encoder_outputs, const Matrix& keys) const {
  DTRAIN_ISA_SELECT(isa, MultiplyPacked)
  ({.a = encoder_outputs, .packed = keys_weight, .bias = keys_bias, .c = keys}, 0,
   PanelsOf(sizes.A));
}

Range DecoderWeights::all_panels() const { return {0, PanelsOf(sizes.V)}; }

void DecoderWeights::Logits(Isa isa, const ConstMatrix& features, Range panels,
                            const Matrix& logits) const {
  DTRAIN_ISA_SELECT(isa, MultiplyPacked)
  ({.a = features, .packed = out, .bias = out_bias, .c = logits}, panels.begin, panels.end);
}

Attention AttentionOf(const DecoderSizes& s, const float* v, const DecoderRows& r, int64_t row) {
  const int64_t sentence = r.sentence[row];
  return {.keys = r.keys + sentence * s.S * s.A,
          .values = r.values + sentence * s.S * s.C,
          .query = r.query.Row(row),
          .v = v,
          .length = r.lengths[sentence],
          .source = s.S,
          .size = s.A,
          .context_size = s.C};
}

void DecoderStep(Isa isa, const DecoderWeights& w, const DecoderRows& r) {
  const auto [H, C, E, A, V, S] = w.sizes;
  const auto multiply = [&](const PackedProduct& product) {
    DTRAIN_ISA_SELECT(isa, MultiplyPacked)(product, 0, PanelsOf(product.c.columns));
  };
  const int64_t rows = r.features.rows;
  multiply({.a = r.state_before, .packed = w.query, .bias = nullptr, .c = r.query});
  for (int64_t i = 0; i < rows; ++i) {
    DTRAIN_ISA_SELECT(isa, Attend)
    (AttentionOf(w.sizes, w.v, r, i), r.weights.Row(i), r.features.Row(i) + H);
  }
  multiply({.a = r.features.Columns(H, C + E),
            .packed = w.in,
            .bias = w.bias_in,
            .c = r.gates.Columns(0, 3 * H)});
  multiply({.a = r.state_before, .packed = w.state, .bias = w.bias_state, .c = r.from_state});
  for (int64_t i = 0; i < rows; ++i) {
    DTRAIN_ISA_SELECT(isa, GruForward)
    (r.gates.Row(i), r.from_state.Row(i), r.state_before.Row(i), H, r.features.Row(i));
  }
}

}  // namespace dtrain
