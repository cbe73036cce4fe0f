// Computes one step of the decoder for a block of rows on the GPU, shared by training, evaluation and beam search.
//
// A row's results are its features [s; c; e], in the order in which fc_out reads them.
#pragma once

#include <memory>
#include <span>

#include "framework/nn/step_decoder.h"
#include "layers/attention_decoder/attention_decoder.h"
#include "layers/attention_decoder/attention_loops_cuda.h"

namespace dtrain {

// Holds non-owning views of the parameters, or of their gradients, split by the factor that they are multiplied with.
struct DecoderParams {
  DecoderSizes sizes;
  DeviceMatrix query, keys;        // attn's state half [A, H] and encoder half [A, C]
  DeviceMatrix embedding;          // [V, E]
  DeviceMatrix embedded, context;  // the GRU's input halves [3 H, E] and [3 H, C]
  DeviceMatrix state;              // [3 H, H]
  DeviceMatrix out;                // [V, H + C + E]
  float *keys_bias, *v, *bias_in, *bias_state, *out_bias;

  // With `queue`, the factors of products have 16 bits in `rounded`, RoomToRound floats, once Round has been called.
  static DecoderParams Of(const DecoderSizes& sizes, std::span<const Tensor> params,
                          const CudaQueue* queue = nullptr, float* rounded = nullptr);
  static int64_t RoomToRound(const CudaQueue& queue, const DecoderSizes& sizes);
  void Round(CudaQueue& queue) const;
};

// Refers to the memory of the rows of a step.
struct DecoderRowsCuda {
  DeviceMatrix state_before;  // [., H]
  DeviceMatrix features;      // [., H + C + E]; e must be set, as must its copy if there is one
  DeviceMatrix gates;         // [., 4 H], the rows of GruCell
  float* from_state;          // [., 3 H], scratch
  AttentionRows attention;
  SoftmaxSum* sums;  // scratch, one per row
};

// Computes keys [rows, A] from encoder outputs [rows, C].
void DecoderKeys(CudaQueue& queue, const DecoderParams& params, const DeviceMatrix& encoder_outputs,
                 const DeviceMatrix& keys);

// Computes the new states from the previous states and the embedded tokens; fills s and c of the features, and of their
// copy if there is one.
void DecoderStep(CudaQueue& queue, const DecoderParams& params, const DecoderRowsCuda& rows);

// Computes logits [rows, V] from features.
void DecoderLogits(CudaQueue& queue, const DecoderParams& params, const DeviceMatrix& features,
                   const DeviceMatrix& logits);

// Returns the step decoder for beam search (attention_search_cuda.cu).
std::unique_ptr<StepDecoder> MakeAttentionStepDecoderCuda(const AttentionDecoder& layer,
                                                          const Device& device);

}  // namespace dtrain
