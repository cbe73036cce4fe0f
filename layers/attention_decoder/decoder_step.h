// One step of the decoder for some rows: what training, evaluation and search share.  A row is a
// sentence, or a hypothesis about one.
//
// What a row has computed stands in its features [s; c; e], the order in which fc_out reads them;
// the GRU reads [c; e] of them, so its packed weights have their columns in that order.
#pragma once

#include "framework/core/layout.h"
#include "framework/device/device.h"
#include "framework/kernels/cpu/matrix.h"
#include "framework/nn/kernel.h"
#include "layers/attention_decoder/attention_decoder.h"
#include "layers/attention_decoder/attention_loops.h"

namespace dtrain {

// The parameters, laid out for packed products; addresses only.
struct DecoderWeights {
  DecoderSizes sizes;
  const float *keys_bias, *v, *embedding, *bias_in, *bias_state, *out_bias;
  float *keys_weight, *query, *in, *state, *out;  // packed

  // Floats that `room` of Bind must have.
  static int64_t RoomFloats(const DecoderSizes& sizes);
  static DecoderWeights Bind(const DecoderSizes& sizes, const KernelArgs& args, float* room);
  // Packs share `thread` of `team`.
  void Pack(Isa isa, const KernelArgs& args, int thread, int team) const;

  // keys [rows, A] of encoder outputs [rows, C].
  void Keys(Isa isa, const ConstMatrix& encoder_outputs, const Matrix& keys) const;
  // logits [rows, V] of features; panels of 48 outputs, for sharing out.
  void Logits(Isa isa, const ConstMatrix& features, Range panels, const Matrix& logits) const;
  Range all_panels() const;
};

// The rows of a block.
struct DecoderRows {
  ConstMatrix state_before;  // [., H]
  Matrix features;           // [., H + C + E], e is filled in
  Matrix query;              // [., A]
  Matrix gates;              // [., 4 H], GruForward's rows
  Matrix weights;            // [., S], of the attention
  Matrix from_state;         // [., 3 H], room
  const int64_t* sentence;   // of each row; keys, values and lengths are by sentence
  const float* keys;         // [sentences, S, A]
  const float* values;       // [sentences, S, C]
  const int64_t* lengths;    // [sentences]
};

// From the states before and the embedded tokens to the new states: fills features.
void DecoderStep(Isa isa, const DecoderWeights& weights, const DecoderRows& rows);

// What AttendBackward and Attend want to know about one row.
Attention AttentionOf(const DecoderSizes& sizes, const float* v, const DecoderRows& rows,
                      int64_t row);

}  // namespace dtrain
