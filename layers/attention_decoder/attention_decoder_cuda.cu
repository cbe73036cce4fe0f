// Implements the attention decoder on the GPU under the name "cublas".
//
// Forward runs the steps one by one, each for all sentences at once; the most likely token that the next step reads is
// found on the GPU. Backward computes the gradients of fc_out in one product over all steps, then the gradients that
// flow from step to step, then those of all other weights, with one product for each.  It overwrites the rows of gates
// that Forward kept with the gradients by the gates' arguments.
#include <algorithm>

#include "framework/kernels/cuda/cells.h"
#include "framework/kernels/cuda/embedding_gradient.h"
#include "framework/kernels/cuda/rows.h"
#include "framework/nn/kernel.h"
#include "layers/attention_decoder/decoder_step_cuda.h"

namespace dtrain {
namespace {

// Applies dropout to the embedded tokens of step t.
void DropWords(CudaQueue& queue, const StepValues* values, uint64_t layer_index, int64_t t,
               double ratio, const DeviceMatrix& e) {
  DropRows(
      queue, values, ratio,
      [=] DT_DEVICE(const StepValues& of, int64_t n) {
        return DecoderDropout(of.seed, layer_index, of.step, of.first_position + n, t);
      },
      e, e);
}

void DecideForcing(CudaQueue& queue, const StepValues* values, double probability,
                   uint64_t layer_index, int64_t steps, int32_t* forced) {
  ForEach(queue, {"teacher forcing", {Reads(values, 1), Writes(forced, steps)}}, steps,
          [=] DT_DEVICE(int64_t t) {
            forced[t] = TeacherForces(probability, values->seed, layer_index, values->step, t);
          });
}

class AttentionDecoderCuda : public Kernel {
 public:
  explicit AttentionDecoderCuda(const KernelRequest& request)
      : layer_(*static_cast<const AttentionDecoder*>(request.layer)),
        layer_index_(request.layer_index),
        sizes_(DecoderSizes::Of(layer_, request.inputs[0])),
        N_(request.inputs[3][0]),
        T_(request.inputs[3][1]),
        training_(request.mode == Mode::kTrain),
        queue_(ProductQueueOf(request.device)),
        embedding_gradient_(N_ * T_, sizes_.V, sizes_.E) {
    PlaceMemory();
    if (!training_) step_decoder_ = MakeAttentionStepDecoderCuda(layer_, request.device);
  }

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    needs.scratch_bytes = std::max(forward_.bytes(), backward_.bytes());
    needs.saved_bytes = saved_.bytes();
    needs.backward_reads_inputs = true;
    return needs;
  }

  StepDecoder* step_decoder() override { return step_decoder_.get(); }

  void Forward(const KernelArgs& args) override {
    const DecoderParams params = ParamsOf(args);
    params.Round(queue_);
    RoundOnce(queue_, EncoderOutputs(args));
    RoundOnce(queue_, FirstState(args));
    const int32_t* const target = args.inputs[3].i32();
    FindLengths(queue_, args.inputs[2].i32(), N_, sizes_.S, layer_.pad(), Lengths(args));
    DecoderKeys(queue_, params, EncoderOutputs(args), Keys(args));
    queue_.Copy(Tokens(args), target, static_cast<size_t>(N_ * T_) * sizeof(int32_t));
    if (training_ && ChoosesWords()) {
      DecideForcing(queue_, args.values, layer_.teacher_forcing(), layer_index_, T_, Forced(args));
    }
    for (int64_t t = 0; t < T_; ++t) {
      const DeviceMatrix e = StepOf(Features(args), t).Columns(sizes_.H + sizes_.C, sizes_.E);
      if (t > 0 && ChoosesWords()) {
        ChooseLargest(queue_, StepOf(Logits(args), t - 1), training_ ? Forced(args) + t : nullptr,
                      Tokens(args) + t, T_);
      }
      TakeRows(queue_, Tokens(args) + t, T_, params.embedding, e);
      if (Drops()) {
        Drop(args, t, e);
      } else {
        RoundOnce(queue_, e);
      }
      DecoderStep(queue_, params, RowsAt(args, params, t));
      DecoderLogits(queue_, params, StepOf(Features(args), t), StepOf(Logits(args), t));
    }
  }

  void Backward(const KernelArgs& args) override {
    const DecoderParams params = ParamsOf(args);
    const DecoderParams gradients = DecoderParams::Of(sizes_, args.param_gradients);
    OutputGradients(args, params, gradients);
    for (const auto& [place, count] :
         {std::pair{dstate_, N_ * sizes_.H}, std::pair{dv_, N_ * sizes_.A},
          std::pair{dkeys_, N_ * sizes_.S * sizes_.A}}) {
      ZeroFloats(queue_, Scratch(args, place), count);
    }
    for (int64_t t = T_ - 1; t >= 0; --t) BackwardStep(args, params, t);
    RoundOnce(queue_, KeyGradients(args));
    RecurrentGradients(args, gradients);
    AttentionGradients(args, gradients);
    EmbeddingGradients(args, params, gradients);
    if (args.input_gradients[0].data != nullptr) EncoderGradients(args, params);
    if (args.input_gradients[1].data != nullptr) {
      queue_.Copy(args.input_gradients[1].data, Scratch(args, dstate_),
                  static_cast<size_t>(N_ * sizes_.H) * sizeof(float));
    }
  }

 private:
  void PlaceMemory() {
    const auto [H, C, E, A, V, S] = sizes_;
    const int64_t all = N_ * T_, F = sizes_.features();
    const auto copy = [&](FloatRoom& room, int64_t numbers) {
      return room.Take(RoomToRound(queue_, numbers));
    };
    from_state_ = forward_.Take(N_ * 3 * H);
    first_state_copy_ = copy(forward_, N_ * H);
    forced_ = forward_.Take(T_);
    sums_ = forward_.Take(N_ * static_cast<int64_t>(sizeof(SoftmaxSum) / sizeof(float)));
    FloatRoom& kept = training_ ? saved_ : forward_;
    lengths_ = kept.Take(N_);
    tokens_ = kept.Take(all);
    features_ = kept.Take(all * F);
    gates_ = kept.Take(all * GruCell::kRow * H);
    query_ = kept.Take(all * A);
    weights_ = kept.Take(all * S);
    keys_ = kept.Take(N_ * S * A);
    rounded_ = kept.Take(DecoderParams::RoomToRound(queue_, sizes_));
    features_copy_ = copy(kept, all * F);
    encoder_copy_ = copy(kept, N_ * S * C);
    if (!training_) return;
    dfeatures_ = backward_.Take(all * F);
    before_ = backward_.Take(all * H);
    dfrom_state_ = backward_.Take(all * 3 * H);
    dquery_ = backward_.Take(all * A);
    dstate_ = backward_.Take(N_ * H);
    dv_ = backward_.Take(N_ * A);
    room_ = backward_.Take(N_ * S);
    dkeys_ = backward_.Take(N_ * S * A);
    gradients_copy_ = copy(backward_, all * std::max(WholePacks(V), GruCell::kRow * H));
    dfrom_state_copy_ = copy(backward_, all * 3 * H);
    before_copy_ = copy(backward_, all * H);
    dquery_copy_ = copy(backward_, all * A);
    dkeys_copy_ = copy(backward_, N_ * S * A);
    sorted_ = backward_.Take(
        static_cast<int64_t>(embedding_gradient_.scratch_bytes() / sizeof(float)) + 1);
  }

  // In 16 bits each step would else round the weights again.
  DecoderParams ParamsOf(const KernelArgs& args) const {
    return DecoderParams::Of(sizes_, args.params, &queue_, Kept(args, rounded_));
  }

  // ---- places of the data; a matrix has a row for each (n, t) unless stated otherwise
  float* Kept(const KernelArgs& args, int64_t at) const {
    return static_cast<float*>(training_ ? args.saved : args.scratch) + at;
  }
  float* Scratch(const KernelArgs& args, int64_t at) const {
    return static_cast<float*>(args.scratch) + at;
  }
  DeviceMatrix All(const float* data, int64_t columns) const {
    return DeviceMatrix::Dense(data, N_ * T_, columns);
  }
  DeviceMatrix Scratch(const KernelArgs& args, int64_t at, int64_t columns) const {
    return All(Scratch(args, at), columns);
  }
  DeviceMatrix StepOf(const DeviceMatrix& all, int64_t t) const { return all.Every(T_, t, N_); }
  DeviceMatrix Features(const KernelArgs& args) const {
    return ToRoundIn(queue_, All(Kept(args, features_), sizes_.features()),
                     Kept(args, features_copy_));
  }
  DeviceMatrix Gates(const KernelArgs& args) const {
    return All(Kept(args, gates_), GruCell::kRow * sizes_.H);
  }
  DeviceMatrix Logits(const KernelArgs& args) const { return All(args.outputs[0].f32(), sizes_.V); }
  DeviceMatrix EncoderOutputs(const KernelArgs& args) const {
    return ToRoundIn(queue_, DeviceMatrix::Dense(args.inputs[0].f32(), N_ * sizes_.S, sizes_.C),
                     Kept(args, encoder_copy_));
  }
  // Its copy is in Forward's scratch memory.
  DeviceMatrix FirstState(const KernelArgs& args) const {
    return ToRoundIn(queue_, DeviceMatrix::Dense(args.inputs[1].f32(), N_, sizes_.H),
                     Scratch(args, first_state_copy_));
  }
  DeviceMatrix Keys(const KernelArgs& args) const {
    return DeviceMatrix::Dense(Kept(args, keys_), N_ * sizes_.S, sizes_.A);
  }
  int32_t* Tokens(const KernelArgs& args) const {  // the token that each step read
    return reinterpret_cast<int32_t*>(Kept(args, tokens_));
  }
  int32_t* Lengths(const KernelArgs& args) const {
    return reinterpret_cast<int32_t*>(Kept(args, lengths_));
  }
  DeviceMatrix StateBefore(const KernelArgs& args, int64_t t) const {
    return t == 0 ? FirstState(args) : StepOf(Features(args), t - 1).Columns(0, sizes_.H);
  }

  DecoderRowsCuda RowsAt(const KernelArgs& args, const DecoderParams& params, int64_t t) const {
    return {.state_before = StateBefore(args, t),
            .features = StepOf(Features(args), t),
            .gates = StepOf(Gates(args), t),
            .from_state = Scratch(args, from_state_),
            .attention = AttentionAt(args, params, t),
            .sums = reinterpret_cast<SoftmaxSum*>(Scratch(args, sums_))};
  }
  AttentionRows AttentionAt(const KernelArgs& args, const DecoderParams& params, int64_t t) const {
    return {.keys = Kept(args, keys_),
            .values = args.inputs[0].f32(),
            .v = params.v,
            .lengths = Lengths(args),
            .sentence = nullptr,
            .sentences = N_,
            .query = StepOf(All(Kept(args, query_), sizes_.A), t),
            .weights = StepOf(All(Kept(args, weights_), sizes_.S), t)};
  }

  // True if there are steps in which the decoder reads its own choice.
  bool ChoosesWords() const { return !training_ || layer_.teacher_forcing() < 1; }
  int32_t* Forced(const KernelArgs& args) const {  // by t: whether it reads the target's token
    return reinterpret_cast<int32_t*>(Scratch(args, forced_));
  }

  bool Drops() const { return training_ && layer_.dropout() > 0; }
  void Drop(const KernelArgs& args, int64_t t, const DeviceMatrix& e) const {
    DropWords(queue_, args.values, layer_index_, t, layer_.dropout(), e);
  }

  // ---- backward: factors that products read in 16 bits
  // The gradients by the input halves of the gates.  Their copy is where that of the scores' gradients was, which no
  // product reads any more.
  DeviceMatrix GateGradients(const KernelArgs& args) const {
    return ToRoundIn(queue_, Gates(args).Columns(0, 3 * sizes_.H), Scratch(args, gradients_copy_));
  }
  DeviceMatrix StateGateGradients(const KernelArgs& args) const {
    return ToRoundIn(queue_, Scratch(args, dfrom_state_, 3 * sizes_.H),
                     Scratch(args, dfrom_state_copy_));
  }
  DeviceMatrix Before(const KernelArgs& args) const {  // the state before each step
    return In16BitsAlone(
        ToRoundIn(queue_, Scratch(args, before_, sizes_.H), Scratch(args, before_copy_)));
  }
  DeviceMatrix QueryGradients(const KernelArgs& args) const {
    return ToRoundIn(queue_, Scratch(args, dquery_, sizes_.A), Scratch(args, dquery_copy_));
  }
  DeviceMatrix KeyGradients(const KernelArgs& args) const {
    return ToRoundIn(queue_, DeviceMatrix::Dense(Scratch(args, dkeys_), N_ * sizes_.S, sizes_.A),
                     Scratch(args, dkeys_copy_));
  }

  // dw = (or +=) dy^T x.
  void WeightGradient(const KernelArgs& args, const DeviceMatrix& dy, const DeviceMatrix& x,
                      const DeviceMatrix& dw) const {
    Multiply(queue_, dy, x, dw, {.transpose_a = true, .add = args.accumulate});
  }

  // Computes the gradients of fc_out, and dfeatures.
  void OutputGradients(const KernelArgs& args, const DecoderParams& params,
                       const DecoderParams& gradients) const {
    const DeviceMatrix dy = ToRoundPaddedIn(queue_, All(args.output_gradients[0].f32(), sizes_.V),
                                            Scratch(args, gradients_copy_));
    RoundOnce(queue_, dy);
    SumOverRows(queue_, dy, args.accumulate, gradients.out_bias);
    WeightGradient(args, dy, Features(args), gradients.out);
    Multiply(queue_, dy, params.out, Scratch(args, dfeatures_, sizes_.features()));
  }

  void BackwardStep(const KernelArgs& args, const DecoderParams& params, int64_t t) const {
    const int64_t H = sizes_.H;
    const DeviceMatrix dfeatures = StepOf(Scratch(args, dfeatures_, sizes_.features()), t);
    const DeviceMatrix before = StepOf(Before(args), t), state_before = StateBefore(args, t);
    const DeviceMatrix dfrom_state = StepOf(StateGateGradients(args), t);
    const DeviceMatrix gates = StepOf(GateGradients(args), t);
    const DeviceMatrix dquery = StepOf(QueryGradients(args), t);
    const DeviceMatrix dstate = DeviceMatrix::Dense(Scratch(args, dstate_), N_, H);
    const DeviceMatrix dcontext = dfeatures.Columns(H, sizes_.C);
    CellStep cell = {.samples = N_, .hidden = H, .row = gates.data};
    cell.row_stride = gates.stride;
    cell.state_before = state_before.data;
    cell.before_stride = state_before.stride;
    BackwardCells<GruCell>(queue_, cell,
                           {.dy = dfeatures.data,
                            .dy_stride = dfeatures.stride,
                            .dstate = dstate.data,
                            .from_state = dfrom_state.data,
                            .from_state_stride = dfrom_state.stride,
                            .before = before.data,
                            .before_stride = before.stride,
                            .row_copy = CopyOf(queue_, gates),
                            .from_state_copy = CopyOf(queue_, dfrom_state),
                            .before_copy = CopyOf(queue_, before)});
    Multiply(queue_, dfrom_state, params.state, dstate, {.add = true});
    Multiply(queue_, gates, params.context, dcontext, {.add = true});
    AttendBackward(queue_, AttentionAt(args, params, t), dcontext, Scratch(args, room_),
                   Scratch(args, dkeys_), dquery, Scratch(args, dv_));
    Multiply(queue_, dquery, params.query, dstate, {.add = true});
  }

  void RecurrentGradients(const KernelArgs& args, const DecoderParams& gradients) const {
    const auto [H, C, E, A, V, S] = sizes_;
    const DeviceMatrix features = Features(args), din = GateGradients(args);
    const DeviceMatrix dfrom_state = StateGateGradients(args);
    WeightGradient(args, din, features.Columns(H, C), gradients.context);
    WeightGradient(args, din, features.Columns(H + C, E), gradients.embedded);
    WeightGradient(args, dfrom_state, Before(args), gradients.state);
    const int64_t same = GruCell::kSameGates * H;  // their gradients are those in din
    SumOverRows(queue_, din, args.accumulate, gradients.bias_in, gradients.bias_state, same);
    SumOverRows(queue_, dfrom_state.Columns(same, 3 * H - same), args.accumulate,
                gradients.bias_state + same);
  }

  void AttentionGradients(const KernelArgs& args, const DecoderParams& gradients) const {
    const DeviceMatrix dkeys = KeyGradients(args);
    WeightGradient(args, QueryGradients(args), Before(args), gradients.query);
    WeightGradient(args, dkeys, EncoderOutputs(args), gradients.keys);
    SumOverRows(queue_, dkeys, args.accumulate, gradients.keys_bias);
    SumOverRows(queue_, DeviceMatrix::Dense(Scratch(args, dv_), N_, sizes_.A), args.accumulate,
                gradients.v);
  }

  void EmbeddingGradients(const KernelArgs& args, const DecoderParams& params,
                          const DecoderParams& gradients) const {
    const auto [H, C, E, A, V, S] = sizes_;
    const DeviceMatrix de = Scratch(args, dfeatures_, sizes_.features()).Columns(H + C, E);
    Multiply(queue_, GateGradients(args), params.embedded, de, {.add = true});
    for (int64_t t = 0; t < T_ && Drops(); ++t) Drop(args, t, StepOf(de, t));
    embedding_gradient_.Write(queue_, Tokens(args), de, args.accumulate, gradients.embedding.data,
                              Scratch(args, sorted_));
  }

  // Computes the gradient by h: first the part that flows through the context, then the part through the keys.
  void EncoderGradients(const KernelArgs& args, const DecoderParams& params) const {
    const auto [H, C, E, A, V, S] = sizes_;
    float* const dvalues = args.input_gradients[0].f32();
    const int64_t F = sizes_.features();
    const DeviceMatrix dcontext = {Scratch(args, dfeatures_) + H, T_, C, F};
    MultiplyEach(queue_, N_, {DeviceMatrix::Dense(Kept(args, weights_), T_, S), T_ * S},
                 {dcontext, T_ * F}, {DeviceMatrix::Dense(dvalues, S, C), S * C},
                 {.transpose_a = true});
    Multiply(queue_, KeyGradients(args), params.keys, DeviceMatrix::Dense(dvalues, N_ * S, C),
             {.add = true});
  }

  const AttentionDecoder& layer_;
  const uint64_t layer_index_;
  const DecoderSizes sizes_;
  const int64_t N_, T_;  // sentences, steps
  const bool training_;
  CudaQueue& queue_;
  const EmbeddingGradientCuda embedding_gradient_;
  std::unique_ptr<StepDecoder> step_decoder_;  // evaluation only

  // The offsets are in floats.  These are kept from forward to backward: for each (n, t) the token, features [F], gates
  // [4 H], query [A] and weights [S]; for each n the length and keys [S, A]; in 16 bits the parameters (rounded_), features
  // and encoder outputs.
  FloatRoom saved_, forward_, backward_;
  int64_t lengths_ = 0, tokens_ = 0, features_ = 0, gates_ = 0, query_ = 0, weights_ = 0, keys_ = 0;
  int64_t rounded_ = 0, features_copy_ = 0, encoder_copy_ = 0;
  // These are offsets in Forward's scratch memory, with one row per sentence, and per t.
  int64_t from_state_ = 0, sums_ = 0, forced_ = 0, first_state_copy_ = 0;
  // These are offsets in Backward's scratch memory: for each (n, t) dfeatures [F], before [H] (the previous state),
  // dfrom_state [3 H] and dquery [A]; `sorted_` for the embedding's gradient; for each n dstate [H], dv [A], room [S]
  // and dkeys [S, A]; and copies in 16 bits, of which gradients_copy_ is of those by scores, then by gates.
  int64_t dfeatures_ = 0, before_ = 0, dfrom_state_ = 0, dquery_ = 0, sorted_ = 0;
  int64_t dstate_ = 0, dv_ = 0, room_ = 0, dkeys_ = 0, gradients_copy_ = 0;
  int64_t dfrom_state_copy_ = 0, before_copy_ = 0, dquery_copy_ = 0, dkeys_copy_ = 0;
};

std::unique_ptr<Kernel> MakeAttentionDecoderCuda(const KernelRequest& request, const KernelOffer&) {
  return std::make_unique<AttentionDecoderCuda>(request);
}

DTRAIN_KERNEL("attention_decoder", DeviceKind::kCuda, "cublas", OfferPlain,
              MakeAttentionDecoderCuda);

}  // namespace
}  // namespace dtrain
