// Computes one step of the decoder for a block of rows, shared by training, evaluation and beam search.  A row is a
// sentence, or one hypothesis of a beam search about a sentence.
//
// A row's results are its features [s; c; e], in the order in which fc_out reads them.  The GRU reads their part [c;
// e], so the columns of its packed weights are in that order.
#pragma once

#include "framework/core/layout.h"
#include "framework/device/device.h"
#include "framework/kernels/cpu/matrix.h"
#include "framework/nn/kernel.h"
#include "layers/attention_decoder/attention_decoder.h"
#include "layers/attention_decoder/attention_loops.h"

namespace dtrain {

// Holds non-owning pointers to the parameters, packed for products.
struct DecoderWeights {
  DecoderSizes sizes;
  const float *keys_bias, *v, *embedding, *bias_in, *bias_state, *out_bias;
  float *keys_weight, *query, *in, *state, *out;  // packed

  // Returns the number of floats that Bind's `room` must have.
  static int64_t RoomFloats(const DecoderSizes& sizes);
  static DecoderWeights Bind(const DecoderSizes& sizes, const KernelArgs& args, float* room);
  // Packs the share of thread `thread` in a team of `team` threads.
  void Pack(Isa isa, const KernelArgs& args, int thread, int team) const;

  // Computes keys [rows, A] from encoder outputs [rows, C].
  void Keys(Isa isa, const ConstMatrix& encoder_outputs, const Matrix& keys) const;
  // Computes logits [rows, V] from features, for the panels (of 48 outputs each) in `panels`, so that threads can
  // divide them.
  void Logits(Isa isa, const ConstMatrix& features, Range panels, const Matrix& logits) const;
  Range all_panels() const;
};

// Refers to the memory of a block of rows.
struct DecoderRows {
  ConstMatrix state_before;  // [., H]
  Matrix features;           // [., H + C + E]; e must be set
  Matrix query;              // [., A]
  Matrix gates;              // [., 4 H], the rows of GruForward
  Matrix weights;            // [., S], attention weights
  Matrix from_state;         // [., 3 H], scratch
  const int64_t* sentence;   // sentence of each row: index into keys, values, lengths
  const float* keys;         // [sentences, S, A]
  const float* values;       // [sentences, S, C]
  const int64_t* lengths;    // [sentences]
};

// Computes the new states from the previous states and the embedded tokens; fills s and c of the features.
void DecoderStep(Isa isa, const DecoderWeights& weights, const DecoderRows& rows);

// Returns the arguments of Attend and AttendBackward for one row.
Attention AttentionOf(const DecoderSizes& sizes, const float* v, const DecoderRows& rows,
                      int64_t row);

}  // namespace dtrain
