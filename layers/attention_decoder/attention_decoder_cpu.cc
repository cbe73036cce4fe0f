// Implements the memory and the forward pass of the attention decoder on the CPU under the name
// "packed".
#include <algorithm>

#include "framework/device/cpu/parallel.h"
#include "framework/kernels/cpu/loops.h"
#include "framework/kernels/cpu/packed_gemm.h"
#include "framework/nn/kernel.h"
#include "framework/nn/tokens.h"
#include "layers/attention_decoder/decoder_kernel.h"

namespace dtrain {

AttentionDecoderKernel::AttentionDecoderKernel(const KernelRequest& request)
    : layer_(*static_cast<const AttentionDecoder*>(request.layer)),
      layer_index_(request.layer_index),
      sizes_(DecoderSizes::Of(layer_, request.inputs[0])),
      N_(request.inputs[3][0]),
      T_(request.inputs[3][1]),
      F_(sizes_.features()),
      training_(request.mode == Mode::kTrain),
      device_(request.device) {
  PlaceMemory();
  if (!training_) step_decoder_ = MakeAttentionStepDecoder(layer_, device_);
}

void AttentionDecoderKernel::PlaceMemory() {
  const auto [H, C, E, A, V, S] = sizes_;
  packed_ = forward_.Take(DecoderWeights::RoomFloats(sizes_));
  from_state_ = forward_.Take(N_ * 3 * H);
  lengths_ = forward_.Take(2 * N_);
  sentence_ = forward_.Take(2 * N_);
  FloatRoom& kept = training_ ? kept_ : forward_;
  features_ = kept.Take(N_ * T_ * F_);
  gates_ = kept.Take(N_ * T_ * kGruRow * H);
  query_ = kept.Take(N_ * T_ * A);
  weights_ = kept.Take(N_ * T_ * S);
  tokens_ = kept.Take(N_ * T_);
  keys_ = kept.Take(N_ * S * A);
  if (!training_) return;
  packed_back_ = backward_.Take(PackedFloats(H, 2 * H) + PackedFloats(H, H) +
                                PackedFloats(C, 3 * H) + PackedFloats(H, A));
  dfeatures_ = backward_.Take(N_ * T_ * F_);
  before_ = backward_.Take(N_ * T_ * H);
  dquery_ = backward_.Take(N_ * T_ * A);
  dstate_ = backward_.Take(N_ * H);
  dv_ = backward_.Take(N_ * A);
  room_ = backward_.Take(N_ * S);
  dkeys_ = backward_.Take(N_ * S * A);
  lengths_back_ = backward_.Take(2 * N_);
  sentence_back_ = backward_.Take(2 * N_);
}

KernelNeeds AttentionDecoderKernel::Needs() const {
  KernelNeeds needs;
  needs.scratch_bytes = std::max(forward_.bytes(), backward_.bytes());
  needs.saved_bytes = kept_.bytes();
  needs.backward_reads_inputs = true;
  return needs;
}

void AttentionDecoderKernel::FindSentences(const KernelArgs& args, int64_t lengths,
                                           int64_t sentence) const {
  for (int64_t n = 0; n < N_; ++n) {
    const int32_t* const tokens = args.inputs[2].i32() + n * sizes_.S;
    Integers(args, lengths)[n] = SentenceLength(tokens, sizes_.S, layer_.pad());
    Integers(args, sentence)[n] = n;
  }
}

bool AttentionDecoderKernel::ChoosesItself(const KernelArgs& args, int64_t t) const {
  if (t == 0 || t >= T_) return false;
  return !training_ ||
         !TeacherForces(layer_.teacher_forcing(), args.seed, layer_index_, args.step, t);
}

void AttentionDecoderKernel::Forward(const KernelArgs& args) {
  CheckTokens(args.inputs[3].i32(), {N_, T_}, sizes_.V, args.first_position, args.step);
  FindSentences(args, lengths_, sentence_);
  const DecoderWeights weights = DecoderWeights::Bind(sizes_, args, Scratch(args, packed_));
  RunTeam(device_.threads,
          [&](int thread, int team) { weights.Pack(device_.isa, args, thread, team); });
  RunTeam(device_.threads, [&](int thread, int team) {
    const Range sentences = SplitEvenly({0, N_}, team, thread);
    if (sentences.size() > 0) ForwardSentences(args, weights, sentences);
  });
  RunTeam(device_.threads, [&](int thread, int team) {
    const Range panels = SplitEvenly(weights.all_panels(), team, thread);
    for (int64_t t = 0; t < T_; ++t) {
      if (ChoosesItself(args, t + 1)) continue;
      weights.Logits(device_.isa, StepOf(Kept(args, features_, F_), t, {0, N_}), panels,
                     StepOf(All(args.outputs[0].f32(), sizes_.V), t, {0, N_}));
    }
  });
}

void AttentionDecoderKernel::ForwardSentences(const KernelArgs& args, const DecoderWeights& weights,
                                              Range sentences) const {
  const Range source = {sentences.begin * sizes_.S, sentences.end * sizes_.S};
  weights.Keys(device_.isa, EncoderOutputs(args).Rows(source), Keys(args).Rows(source));
  for (int64_t t = 0; t < T_; ++t) {
    for (int64_t n = sentences.begin; n < sentences.end; ++n) EmbedTokens(args, t, n);
    DecoderStep(device_.isa, weights, RowsAt(args, t, sentences, lengths_, sentence_));
    if (!ChoosesItself(args, t + 1)) continue;
    weights.Logits(device_.isa, StepOf(Kept(args, features_, F_), t, sentences),
                   weights.all_panels(),
                   StepOf(All(args.outputs[0].f32(), sizes_.V), t, sentences));
  }
}

void AttentionDecoderKernel::EmbedTokens(const KernelArgs& args, int64_t t, int64_t n) const {
  const auto [H, C, E, A, V, S] = sizes_;
  const int64_t at = n * T_ + t;
  int64_t token = args.inputs[3].i32()[at];
  if (ChoosesItself(args, t)) {
    token = DTRAIN_ISA_SELECT(device_.isa, LargestOf)(args.outputs[0].f32() + (at - 1) * V, V);
  }
  Tokens(args)[at] = static_cast<int32_t>(token);
  float* const e = Kept(args, features_, F_).Row(at) + H + C;
  std::copy_n(args.params[AttentionDecoder::kEmbedding].f32() + token * E, E, e);
  DropRow(args, t, n, e);
}

void AttentionDecoderKernel::DropRow(const KernelArgs& args, int64_t t, int64_t n,
                                     float* row) const {
  if (!training_ || layer_.dropout() == 0) return;
  const Random random =
      DecoderDropout(args.seed, layer_index_, args.step, args.first_position + n, t);
  const DropoutSample sample = SampleOf(random, layer_.dropout());
  DTRAIN_ISA_SELECT(device_.isa, DropElements)(sample, row, sizes_.E, row);
}

DecoderRows AttentionDecoderKernel::RowsAt(const KernelArgs& args, int64_t t, Range sentences,
                                           int64_t lengths, int64_t sentence) const {
  const auto [H, C, E, A, V, S] = sizes_;
  const auto kept = [&](int64_t place, int64_t columns) {
    return StepOf(Kept(args, place, columns), t, sentences);
  };
  const ConstMatrix before = t == 0 ? Matrix::Dense(args.inputs[1].f32(), N_, H).Rows(sentences)
                                    : StepOf(Kept(args, features_, F_), t - 1, sentences);
  return {.state_before = before.Columns(0, H),
          .features = kept(features_, F_),
          .query = kept(query_, A),
          .gates = kept(gates_, kGruRow * H),
          .weights = kept(weights_, S),
          .from_state = Matrix::Dense(Scratch(args, from_state_), N_, 3 * H).Rows(sentences),
          .sentence = Integers(args, sentence) + sentences.begin,
          .keys = Keys(args).data,
          .values = args.inputs[0].f32(),
          .lengths = Integers(args, lengths)};
}

namespace {

std::unique_ptr<Kernel> MakeAttentionDecoder(const KernelRequest& request, const KernelOffer&) {
  return std::make_unique<AttentionDecoderKernel>(request);
}

DTRAIN_KERNEL("attention_decoder", DeviceKind::kCpu, "packed", OfferPlain, MakeAttentionDecoder);

}  // namespace
}  // namespace dtrain
