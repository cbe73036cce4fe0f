// One step of the decoder for some rows, on the GPU: what training, evaluation and search share.
//
// What a row has computed stands in its features [s; c; e], the order in which fc_out reads them.
#pragma once

#include <memory>
#include <span>

#include "framework/nn/step_decoder.h"
#include "layers/attention_decoder/attention_decoder.h"
#include "layers/attention_decoder/attention_loops_cuda.h"

namespace dtrain {

// The parameters, or their gradients, by what they are multiplied with; addresses only.
struct DecoderParams {
  DecoderSizes sizes;
  DeviceMatrix query, keys;        // attn's halves [A, H] and [A, C]
  DeviceMatrix embedding;          // [V, E]
  DeviceMatrix embedded, context;  // the GRU's input halves [3 H, E] and [3 H, C]
  DeviceMatrix state;              // [3 H, H]
  DeviceMatrix out;                // [V, H + C + E]
  float *keys_bias, *v, *bias_in, *bias_state, *out_bias;

  static DecoderParams Of(const DecoderSizes& sizes, std::span<const Tensor> params);
};

// The rows of a step.
struct DecoderRowsCuda {
  DeviceMatrix state_before;  // [., H]
  DeviceMatrix features;      // [., H + C + E], e is filled in
  DeviceMatrix gates;         // [., 4 H], GruCell's rows
  float* from_state;          // [., 3 H], room
  AttentionRows attention;
  SoftmaxSum* sums;  // room, one a row
};

// keys [rows, A] of encoder outputs [rows, C].
void DecoderKeys(CudaQueue& queue, const DecoderParams& params, const DeviceMatrix& encoder_outputs,
                 const DeviceMatrix& keys);

// From the states before and the embedded tokens to the new states: fills features.
void DecoderStep(CudaQueue& queue, const DecoderParams& params, const DecoderRowsCuda& rows);

// logits [rows, V] of features.
void DecoderLogits(CudaQueue& queue, const DecoderParams& params, const DeviceMatrix& features,
                   const DeviceMatrix& logits);

// For search: attention_search_cuda.cu.
std::unique_ptr<StepDecoder> MakeAttentionStepDecoderCuda(const AttentionDecoder& layer,
                                                          const Device& device);

}  // namespace dtrain
