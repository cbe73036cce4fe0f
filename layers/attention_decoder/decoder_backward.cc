// The attention decoder's backward pass.  What forward kept is used up on the way: a row of gates
// becomes the gradients by what went into the gates.
#include <algorithm>

#include "framework/device/cpu/parallel.h"
#include "framework/kernels/cpu/gemm.h"
#include "framework/kernels/cpu/gru_cell.h"
#include "framework/kernels/cpu/packed_gemm.h"
#include "framework/kernels/cpu/row_loops.h"
#include "framework/kernels/cpu/token_loops.h"
#include "layers/attention_decoder/decoder_kernel.h"

namespace dtrain {
namespace {

using P = AttentionDecoder;

}  // namespace

// Packed for dx = dy W.
struct AttentionDecoderKernel::BackwardWeights {
  float *state_rz, *state_n, *context, *query;
};

AttentionDecoderKernel::BackwardWeights AttentionDecoderKernel::BindBackward(
    const KernelArgs& args) const {
  const auto [H, C, E, A, V, S] = sizes_;
  BackwardWeights w{};
  w.state_rz = Scratch(args, packed_back_);
  w.state_n = w.state_rz + PackedFloats(H, 2 * H);
  w.context = w.state_n + PackedFloats(H, H);
  w.query = w.context + PackedFloats(C, 3 * H);
  const float* const state = args.params[P::kWeightState].f32();
  const float* const in = args.params[P::kWeightIn].f32();
  const float* const attn = args.params[P::kAttnWeight].f32();
  RunTeam(device_.threads, [&](int thread, int team) {
    const auto pack = [&](const PackSource& source, float* to) {
      const Range panels = SplitEvenly({0, PanelsOf(source.n)}, team, thread);
      DTRAIN_ISA_SELECT(device_.isa, PackPanels)(source, to, panels.begin, panels.end);
    };
    pack({state, H, true, H, 2 * H, 0, 2 * H}, w.state_rz);
    pack({state + 2 * H * H, H, true, H, H, 0, H}, w.state_n);
    pack({in + E, E + C, true, C, 3 * H, 0, 3 * H}, w.context);
    pack({attn, H + C, true, H, A, 0, A}, w.query);
  });
  return w;
}

void AttentionDecoderKernel::Backward(const KernelArgs& args) {
  const auto [H, C, E, A, V, S] = sizes_;
  FindSentences(args, lengths_back_, sentence_back_);
  OutputGradients(args);
  const BackwardWeights weights = BindBackward(args);
  RunTeam(device_.threads, [&](int thread, int team) {
    const Range sentences = SplitEvenly({0, N_}, team, thread);
    if (sentences.size() > 0) BackwardSentences(args, weights, sentences);
  });
  RecurrentGradients(args);
  AttentionGradients(args);
  EmbeddingGradients(args);
  if (args.input_gradients[0].data != nullptr) EncoderGradients(args);
  if (args.input_gradients[1].data != nullptr) {
    std::copy_n(Scratch(args, dstate_), N_ * H, args.input_gradients[1].f32());
  }
}

// fc_out: of its weights, and dfeatures.
void AttentionDecoderKernel::OutputGradients(const KernelArgs& args) const {
  const int64_t V = sizes_.V;
  const float* const dy = args.output_gradients[0].f32();
  SumOverRows(device_, dy, V, N_ * T_, V, args.accumulate, args.param_gradients[P::kOutBias].f32());
  WeightGradient(N_ * T_, {dy, V, V}, {Kept(args, features_), F_, F_}, args.accumulate,
                 args.param_gradients[P::kOutWeight].f32(), F_);
  Multiply({.m = N_ * T_,
            .n = F_,
            .k = V,
            .a = dy,
            .a_stride = V,
            .b = args.params[P::kOutWeight].f32(),
            .b_stride = F_,
            .c = Scratch(args, dfeatures_),
            .c_stride = F_});
}

void AttentionDecoderKernel::BackwardSentences(const KernelArgs& args,
                                               const BackwardWeights& weights,
                                               Range sentences) const {
  const auto [H, C, E, A, V, S] = sizes_;
  const auto zero = [&](int64_t place, int64_t width) {
    std::fill_n(Scratch(args, place) + sentences.begin * width, sentences.size() * width, 0.0f);
  };
  zero(dstate_, H);
  zero(dv_, A);
  zero(dkeys_, S * A);
  for (int64_t t = T_ - 1; t >= 0; --t) BackwardStep(args, weights, t, sentences);
}

void AttentionDecoderKernel::BackwardStep(const KernelArgs& args, const BackwardWeights& w,
                                          int64_t t, Range sentences) const {
  const auto [H, C, E, A, V, S] = sizes_;
  const DecoderRows rows = RowsAt(args, t, sentences, lengths_back_, sentence_back_);
  const int64_t first = sentences.begin * T_ + t;
  float* const dfeatures = Scratch(args, dfeatures_) + first * F_;
  float* const before = Scratch(args, before_) + first * H;
  float* const dquery = Scratch(args, dquery_) + first * A;
  float* const dstate = Scratch(args, dstate_) + sentences.begin * H;
  for (int64_t i = 0; i < rows.rows; ++i) {
    const float* const state_before = rows.state_before + i * rows.state_stride;
    std::copy_n(state_before, H, before + i * T_ * H);
    const float* const ds = dfeatures + i * T_ * F_;
    for (int64_t j = 0; j < H; ++j) dstate[i * H + j] += ds[j];
    DTRAIN_ISA_SELECT(device_.isa, GruBackward)
    (rows.gates + i * rows.gates_stride, state_before, H, dstate + i * H);
  }
  // C += A packed
  const auto add = [&](const float* a, int64_t a_stride, const float* packed, int64_t k, float* c,
                       int64_t c_stride, int64_t n) {
    const PackedProduct product = {.a = a,
                                   .a_stride = a_stride,
                                   .packed = packed,
                                   .bias = nullptr,
                                   .c = c,
                                   .c_stride = c_stride,
                                   .m = rows.rows,
                                   .n = n,
                                   .k = k,
                                   .add = true};
    DTRAIN_ISA_SELECT(device_.isa, MultiplyPacked)(product, 0, PanelsOf(n));
  };
  add(rows.gates, rows.gates_stride, w.state_rz, 2 * H, dstate, H, H);
  add(rows.gates + 3 * H, rows.gates_stride, w.state_n, H, dstate, H, H);
  add(rows.gates, rows.gates_stride, w.context, 3 * H, dfeatures + H, T_ * F_, C);
  for (int64_t i = 0; i < rows.rows; ++i) {
    const int64_t n = sentences.begin + i;
    DTRAIN_ISA_SELECT(device_.isa, AttendBackward)
    (AttentionOf(sizes_, args.params[P::kV].f32(), rows, i), rows.weights + i * rows.weights_stride,
     dfeatures + i * T_ * F_ + H, Scratch(args, room_) + n * S, Scratch(args, dkeys_) + n * S * A,
     dquery + i * T_ * A, Scratch(args, dv_) + n * A);
  }
  add(dquery, T_ * A, w.query, A, dstate, H, H);
}

// The GRU's weights; rows of gates hold the gradients by xr = hr, xz = hz, xn, hn.
void AttentionDecoderKernel::RecurrentGradients(const KernelArgs& args) const {
  const auto [H, C, E, A, V, S] = sizes_;
  const float* const dgates = Kept(args, gates_);
  const int64_t row = kGruRow * H, rows = N_ * T_;
  const auto add = [&](const FloatRows& dy, const FloatRows& x, float* dw, int64_t stride) {
    WeightGradient(rows, dy, x, args.accumulate, dw, stride);
  };
  float* const in = args.param_gradients[P::kWeightIn].f32();
  float* const state = args.param_gradients[P::kWeightState].f32();
  const float* const features = Kept(args, features_);
  const FloatRows before = {Scratch(args, before_), H, H};
  add({dgates, row, 3 * H}, {features + H, F_, C}, in + E, E + C);
  add({dgates, row, 3 * H}, {features + H + C, F_, E}, in, E + C);
  add({dgates, row, 2 * H}, before, state, H);
  add({dgates + 3 * H, row, H}, before, state + 2 * H * H, H);
  float* const bias_state = args.param_gradients[P::kBiasState].f32();
  SumOverRows(device_, dgates, row, rows, 3 * H, args.accumulate,
              args.param_gradients[P::kBiasIn].f32());
  SumOverRows(device_, dgates, row, rows, 2 * H, args.accumulate, bias_state);
  SumOverRows(device_, dgates + 3 * H, row, rows, H, args.accumulate, bias_state + 2 * H);
}

void AttentionDecoderKernel::AttentionGradients(const KernelArgs& args) const {
  const auto [H, C, E, A, V, S] = sizes_;
  float* const attn = args.param_gradients[P::kAttnWeight].f32();
  const float* const dkeys = Scratch(args, dkeys_);
  WeightGradient(N_ * T_, {Scratch(args, dquery_), A, A}, {Scratch(args, before_), H, H},
                 args.accumulate, attn, H + C);
  WeightGradient(N_ * S, {dkeys, A, A}, {args.inputs[0].f32(), C, C}, args.accumulate, attn + H,
                 H + C);
  SumOverRows(device_, dkeys, A, N_ * S, A, args.accumulate,
              args.param_gradients[P::kAttnBias].f32());
  SumOverRows(device_, Scratch(args, dv_), A, N_, A, args.accumulate,
              args.param_gradients[P::kV].f32());
}

void AttentionDecoderKernel::EmbeddingGradients(const KernelArgs& args) const {
  const auto [H, C, E, A, V, S] = sizes_;
  float* const de = Scratch(args, dfeatures_) + H + C;
  Multiply({.m = N_ * T_,
            .n = E,
            .k = 3 * H,
            .a = Kept(args, gates_),
            .a_stride = kGruRow * H,
            .b = args.params[P::kWeightIn].f32(),
            .b_stride = E + C,
            .c = de,
            .c_stride = F_,
            .add = true});
  ParallelFor(device_.threads, N_, [&](int64_t n) {
    for (int64_t t = 0; t < T_; ++t) DropRow(args, t, n, de + (n * T_ + t) * F_);
  });
  EmbeddingGradient(device_.threads, {Tokens(args), static_cast<size_t>(N_ * T_)}, de, F_, V, E,
                    args.accumulate, args.param_gradients[P::kEmbedding].f32());
}

// By way of the context, then of the keys.
void AttentionDecoderKernel::EncoderGradients(const KernelArgs& args) const {
  const auto [H, C, E, A, V, S] = sizes_;
  float* const dvalues = args.input_gradients[0].f32();
  const float* const dcontext = Scratch(args, dfeatures_) + H;
  const int64_t values = S * C, weights = T_ * S;
  ParallelFor(device_.threads, N_, [&](int64_t n) {
    DTRAIN_ISA_SELECT(device_.isa, ValueGradients)
    (Kept(args, weights_) + n * weights, dcontext + n * T_ * F_, F_, T_, sizes_.S, sizes_.C,
     dvalues + n * values);
  });
  Multiply({.m = N_ * S,
            .n = C,
            .k = A,
            .a = Scratch(args, dkeys_),
            .a_stride = A,
            .b = args.params[P::kAttnWeight].f32() + H,
            .b_stride = H + C,
            .c = dvalues,
            .c_stride = C,
            .add = true});
}

}  // namespace dtrain
