#include "tests/cuda/least_bytes.h"

#include <map>
#include <numeric>

#include "framework/core/check.h"
#include "framework/nn/recurrent_layer.h"
#include "layers/attention_decoder/attention_decoder.h"

namespace dtrain {
namespace {

double BytesOf(const Tensor& tensor) {
  return static_cast<double>(tensor.shape.count()) * static_cast<double>(SizeOf(tensor.dtype));
}

// Adds up those that the call has: a null gradient is not wanted.
double BytesOf(std::span<const Tensor> tensors) {
  return std::accumulate(tensors.begin(), tensors.end(), 0.0, [](double sum, const Tensor& t) {
    return t.data == nullptr ? sum : sum + BytesOf(t);
  });
}

// Returns what it costs to add a gradient to one that another layer has written, beyond writing it.
double ReadToAdd(const KernelArgs& args) {
  return args.adds_input_gradient ? BytesOf(args.input_gradients[0]) : 0;
}

double OnceEach(const KernelArgs& args, bool backward) {
  if (!backward) return BytesOf(args.inputs) + BytesOf(args.params) + BytesOf(args.outputs);
  return BytesOf(args.output_gradients) + BytesOf(args.input_gradients) +
         BytesOf(args.param_gradients) + ReadToAdd(args);
}

double Product(const KernelArgs& args, bool backward) {
  if (!backward) return OnceEach(args, false);
  const bool to_input = args.input_gradients[0].data != nullptr;
  const double of_inputs = to_input ? BytesOf(args.output_gradients) + BytesOf(args.params[0]) : 0;
  return OnceEach(args, true) + BytesOf(args.inputs) + of_inputs;
}

double BatchNorm(const KernelArgs& args, bool backward) {
  const double x = BytesOf(args.inputs[0]);
  if (!backward) return OnceEach(args, false) + x;
  return OnceEach(args, true) + BytesOf(args.output_gradients) + 2 * x;
}

// Scores are read for the largest and the sum, and again for the gradient.
double Loss(const KernelArgs& args, bool backward) {
  return BytesOf(args.inputs[0]) + (backward ? BytesOf(args.input_gradients) : 0);
}

// A layer that takes some rows of a tensor reads no others.  Its gradient has zeros in those, which are written.
double TakenRows(const KernelArgs& args, bool backward) {
  return backward ? OnceEach(args, true) : 2 * BytesOf(args.outputs);
}

// The layer adds its gradients to those of another reader, in the states that it took.
double FinalState(const KernelArgs& args, bool backward) {
  return backward && args.adds_input_gradient ? 3 * BytesOf(args.output_gradients)
                                              : TakenRows(args, backward);
}

// A GRU's cell over all steps, in values for each sample and step.  Forward: the input's product is written and read
// (3H each), what backward needs is written (4H), the state is written and read.  Backward: the gradient of the output,
// what was saved and the state before are read, gradients of the gates are written (4H) and read by the products for
// the state before (3H), for both weights (3H each) and, `to_input`, for the input; the gradient that a step hands on
// is written and read, and the state before read again for its weights.
double GruCell(double hidden, bool backward, bool to_input) {
  if (!backward) return (3 + 3 + 4 + 1 + 1) * hidden;
  return (1 + 4 + 1 + 4 + 3 + 3 + 3 + 2 + 1 + (to_input ? 3 : 0)) * hidden;
}

// `factor`: bytes of a weight in a product, here and below.
double Gru(const RecurrentLayer& layer, const KernelArgs& args, bool backward, double factor) {
  DT_CHECK(layer.layers() == 1);
  const Tensor& x = args.inputs[0];
  const double rows = static_cast<double>(x.shape[0] * x.shape[1]);
  const double steps = static_cast<double>(x.shape[1]);
  const double value = static_cast<double>(SizeOf(args.outputs[0].dtype));
  const double hidden = static_cast<double>(layer.hidden());
  const bool to_input = backward && args.input_gradients[0].data != nullptr;
  double least = 0;
  for (int64_t d = 0; d < layer.directions(); ++d) {
    const auto weight = [&](RecurrentLayer::Part part) {
      return factor * static_cast<double>(args.params[layer.ParamOf(0, d, part)].shape.count());
    };
    const double in = weight(RecurrentLayer::kWeightIn);
    const double state = weight(RecurrentLayer::kWeightState);
    least += rows * value * GruCell(hidden, backward, to_input) + BytesOf(x) + steps * state;
    if (!backward || to_input) least += in;
  }
  if (backward) least += BytesOf(args.param_gradients) + BytesOf(args.input_gradients);
  return least;
}

// As the step's words may be those of the step before, each step computes all of the step: scores of the source's
// words, the cell, and the scores of the vocabulary.
double Decoder(const AttentionDecoder& layer, const KernelArgs& args, bool backward,
               double factor) {
  using Param = AttentionDecoder::Param;
  const auto weight = [&](Param p) {
    return factor * static_cast<double>(args.params[p].shape.count());
  };
  const DecoderSizes sizes = DecoderSizes::Of(layer, args.inputs[0].shape);
  const double value = static_cast<double>(SizeOf(args.outputs[0].dtype));
  const double samples = static_cast<double>(args.inputs[0].shape[0]);
  const double steps = static_cast<double>(args.inputs[3].shape[1]);
  const auto H = static_cast<double>(sizes.H), C = static_cast<double>(sizes.C),
             E = static_cast<double>(sizes.E), A = static_cast<double>(sizes.A),
             S = static_cast<double>(sizes.S), V = static_cast<double>(sizes.V);
  const double words = samples * S * value, rows = samples * value;
  const double attn_state = weight(Param::kAttnWeight) * H / (H + C);
  const double attn_words = weight(Param::kAttnWeight) - attn_state;
  const double cell = weight(Param::kWeightIn) + weight(Param::kWeightState);
  // Each step reads the weights of the state, of the cell's input and of the scores.
  const double weights = attn_state + cell + weight(Param::kOutWeight);
  const double features = H + C + E;
  if (!backward) {
    const double keys = words * C + attn_words + words * A;
    const double attention = words * (A + C) + rows * (H + A + A + C);  // energies, then contexts
    const double step =
        weights + attention + rows * (2 * E + E + C + GruCell(H, false, false) + features + V);
    return keys + steps * step;
  }
  // Scores: two products of all steps.  Cell: its weights, the state's part of the attention, in each step.
  const double scores = steps * rows * (2 * V + 2 * features) + weight(Param::kOutWeight);
  // Gradients of contexts with the words, energies again, and the sum of the keys' gradients, which all steps add to.
  const double attention = words * (C + A + 2 * A) + rows * (C + A + A + H);
  const double step =
      cell + attn_state + attention + rows * (GruCell(H, true, true) + 2 * (E + C) + 2 * A + H + E);
  // One product over all steps each gives the words' gradients from contexts and from keys, and the keys' weights.
  const double after = steps * rows * (S + C) + words * (A + C) + attn_words + words * (A + C);
  return scores + steps * step + after + BytesOf(args.param_gradients) +
         BytesOf(args.input_gradients);
}

}  // namespace

double LeastBytes(const KernelTiming& call, Precision precision) {
  if (call.layer == nullptr) return 0;
  const std::string& type = call.layer->type;
  const KernelArgs& args = *call.args;
  const double factor = precision == Precision::kBf16 || precision == Precision::kFp16 ? 2 : 4;
  if (type == "gru") {
    const auto& layer = dynamic_cast<const RecurrentLayer&>(*call.layer->layer);
    return Gru(layer, args, call.backward, factor);
  }
  if (type == "attention_decoder") {
    const auto& layer = dynamic_cast<const AttentionDecoder&>(*call.layer->layer);
    return Decoder(layer, args, call.backward, factor);
  }
  static const std::map<std::string, double (*)(const KernelArgs&, bool)> kOthers{
      {"convolution", Product}, {"inner_product", Product},      {"batch_norm", BatchNorm},
      {"embedding", TakenRows}, {"softmax_cross_entropy", Loss}, {"final_state", FinalState}};
  const auto found = kOthers.find(type);
  return (found == kOthers.end() ? OnceEach : found->second)(args, call.backward);
}

double LeastBytesOfUpdate(int64_t weights, int64_t in_16_bits, bool loss_scale) {
  const double vectors = loss_scale ? 6 : 5;
  return vectors * sizeof(float) * static_cast<double>(weights) +
         2 * static_cast<double>(in_16_bits);
}

}  // namespace dtrain
