// Implements the attention decoder's backward pass on the CPU. It overwrites the rows of gates that Forward kept with
// the gradients by the gates' arguments.
#include <algorithm>

#include "framework/device/cpu/parallel.h"
#include "framework/kernels/cpu/loops.h"
#include "framework/kernels/cpu/packed_gemm.h"
#include "layers/attention_decoder/decoder_kernel.h"

namespace dtrain {
namespace {

using P = AttentionDecoder;

}  // namespace

// Weights packed for products dx = dy W.
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
  const ConstMatrix state = Matrix::Dense(args.params[P::kWeightState].f32(), 3 * H, H);
  const ConstMatrix in = Matrix::Dense(args.params[P::kWeightIn].f32(), 3 * H, E + C);
  const ConstMatrix attn = Matrix::Dense(args.params[P::kAttnWeight].f32(), A, H + C);
  RunTeam(device_.threads, [&, H = H, C = C, E = E](int thread, int team) {
    const auto pack = [&](const ConstMatrix& weights, float* to) {
      const Range panels = SplitEvenly({0, PanelsOf(weights.columns)}, team, thread);
      DTRAIN_ISA_SELECT(device_.isa, PackPanels)
      (PackSource::WholeTransposed(weights), to, panels.begin, panels.end);
    };
    pack(state.Rows({0, 2 * H}), w.state_rz);
    pack(state.Rows({2 * H, 3 * H}), w.state_n);
    pack(in.Columns(E, C), w.context);
    pack(attn.Columns(0, H), w.query);
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

// Computes the gradients of fc_out, and dfeatures.
void AttentionDecoderKernel::OutputGradients(const KernelArgs& args) const {
  const int64_t V = sizes_.V;
  const Matrix dy = All(args.output_gradients[0].f32(), V);
  SumOverRows(device_, dy, args.accumulate, args.param_gradients[P::kOutBias].f32());
  WeightGradient(dy, Kept(args, features_, F_), args.accumulate,
                 Matrix::Dense(args.param_gradients[P::kOutWeight].f32(), V, F_));
  Multiply({.a = dy,
            .b = Matrix::Dense(args.params[P::kOutWeight].f32(), V, F_),
            .c = Scratch(args, dfeatures_, F_)});
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
  const auto step = [&](int64_t place, int64_t columns) {
    return StepOf(Scratch(args, place, columns), t, sentences);
  };
  const Matrix dfeatures = step(dfeatures_, F_), before = step(before_, H);
  const Matrix dquery = step(dquery_, A);
  const Matrix dstate = Matrix::Dense(Scratch(args, dstate_), N_, H).Rows(sentences);
  for (int64_t i = 0; i < sentences.size(); ++i) {
    const float* const state_before = rows.state_before.Row(i);
    std::copy_n(state_before, H, before.Row(i));
    for (int64_t j = 0; j < H; ++j) dstate.Row(i)[j] += dfeatures.Row(i)[j];
    DTRAIN_ISA_SELECT(device_.isa, GruBackward)
    (rows.gates.Row(i), state_before, H, dstate.Row(i));
  }
  const auto add = [&](const ConstMatrix& a, const float* packed, const Matrix& c) {
    const PackedProduct product = {.a = a, .packed = packed, .bias = nullptr, .c = c, .add = true};
    DTRAIN_ISA_SELECT(device_.isa, MultiplyPacked)(product, 0, PanelsOf(c.columns));
  };
  add(rows.gates.Columns(0, 2 * H), w.state_rz, dstate);
  add(rows.gates.Columns(3 * H, H), w.state_n, dstate);
  add(rows.gates.Columns(0, 3 * H), w.context, dfeatures.Columns(H, C));
  for (int64_t i = 0; i < sentences.size(); ++i) {
    const int64_t n = sentences.begin + i;
    DTRAIN_ISA_SELECT(device_.isa, AttendBackward)
    (AttentionOf(sizes_, args.params[P::kV].f32(), rows, i), rows.weights.Row(i),
     dfeatures.Row(i) + H, Scratch(args, room_) + n * S, Scratch(args, dkeys_) + n * S * A,
     dquery.Row(i), Scratch(args, dv_) + n * A);
  }
  add(dquery, w.query, dstate);
}

// Computes the gradients of the GRU's weights.  The rows of gates hold the gradients by xr (= hr), xz (= hz), xn, hn.
void AttentionDecoderKernel::RecurrentGradients(const KernelArgs& args) const {
  const auto [H, C, E, A, V, S] = sizes_;
  const Matrix dgates = Kept(args, gates_, kGruRow * H);
  const Matrix din = dgates.Columns(0, 3 * H);
  const Matrix drz = dgates.Columns(0, 2 * H), dn = dgates.Columns(3 * H, H);
  const Matrix features = Kept(args, features_, F_), before = Scratch(args, before_, H);
  const Matrix in = Matrix::Dense(args.param_gradients[P::kWeightIn].f32(), 3 * H, E + C);
  const Matrix state = Matrix::Dense(args.param_gradients[P::kWeightState].f32(), 3 * H, H);
  WeightGradient(din, features.Columns(H, C), args.accumulate, in.Columns(E, C));
  WeightGradient(din, features.Columns(H + C, E), args.accumulate, in.Columns(0, E));
  WeightGradient(drz, before, args.accumulate, state.Rows({0, 2 * H}));
  WeightGradient(dn, before, args.accumulate, state.Rows({2 * H, 3 * H}));
  float* const bias_state = args.param_gradients[P::kBiasState].f32();
  SumOverRows(device_, din, args.accumulate, args.param_gradients[P::kBiasIn].f32());
  SumOverRows(device_, drz, args.accumulate, bias_state);
  SumOverRows(device_, dn, args.accumulate, bias_state + 2 * H);
}

void AttentionDecoderKernel::AttentionGradients(const KernelArgs& args) const {
  const auto [H, C, E, A, V, S] = sizes_;
  const Matrix attn = Matrix::Dense(args.param_gradients[P::kAttnWeight].f32(), A, H + C);
  const Matrix dkeys = Matrix::Dense(Scratch(args, dkeys_), N_ * S, A);
  WeightGradient(Scratch(args, dquery_, A), Scratch(args, before_, H), args.accumulate,
                 attn.Columns(0, H));
  WeightGradient(dkeys, EncoderOutputs(args), args.accumulate, attn.Columns(H, C));
  SumOverRows(device_, dkeys, args.accumulate, args.param_gradients[P::kAttnBias].f32());
  SumOverRows(device_, Matrix::Dense(Scratch(args, dv_), N_, A), args.accumulate,
              args.param_gradients[P::kV].f32());
}

void AttentionDecoderKernel::EmbeddingGradients(const KernelArgs& args) const {
  const auto [H, C, E, A, V, S] = sizes_;
  const Matrix de = Scratch(args, dfeatures_, F_).Columns(H + C, E);
  const Matrix in = Matrix::Dense(args.params[P::kWeightIn].f32(), 3 * H, E + C);
  Multiply({.a = Kept(args, gates_, kGruRow * H).Columns(0, 3 * H),
            .b = in.Columns(0, E),
            .c = de,
            .add = true});
  ParallelFor(device_.threads, N_, [&](int64_t n) {
    for (int64_t t = 0; t < T_; ++t) DropRow(args, t, n, de.Row(n * T_ + t));
  });
  EmbeddingGradient(device_.threads, {Tokens(args), static_cast<size_t>(N_ * T_)}, de, V,
                    args.accumulate, args.param_gradients[P::kEmbedding].f32());
}

// Computes the gradient by h: first the part that flows through the context, then the part through the keys.
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
  const Matrix attn = Matrix::Dense(args.params[P::kAttnWeight].f32(), A, H + C);
  Multiply({.a = Matrix::Dense(Scratch(args, dkeys_), N_ * S, A),
            .b = attn.Columns(H, C),
            .c = Matrix::Dense(dvalues, N_ * S, C),
            .add = true});
}

}  // namespace dtrain
