// The attention decoder on the GPU, one step at a time, for greedy and beam search.
#pragma once

#include <memory>

#include "framework/nn/step_decoder.h"
#include "layers/attention_decoder/attention_decoder.h"

namespace dtrain {

std::unique_ptr<StepDecoder> MakeAttentionStepDecoderCuda(const AttentionDecoder& layer,
                                                          const Device& device);

}  // namespace dtrain
