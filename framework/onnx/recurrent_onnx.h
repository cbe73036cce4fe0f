// Translates to ONNX's GRU and LSTM, for the recurrent layers and for a decoder with such a cell.
//
// ONNX orders the gates differently from PyTorch (GRU: z, r, n; LSTM: i, o, f, g), has one tensor for all directions,
// and time as the first axis.
#pragma once

#include <vector>

#include "framework/onnx/onnx_layer.h"

namespace dtrain {

// Returns an int32 [N] value: the number of tokens before the padding of int64 `tokens` [N, T].
std::string OnnxLengths(const OnnxLayer& to, const std::string& tokens, int64_t pad);

// Returns the operator's inputs W [D, G H, I], R [D, G H, H] and B [D, 2 G H] of one or two directions.
struct OnnxCell {
  int64_t hidden = 0;
  std::vector<size_t> gates;  // PyTorch's index of each of ONNX's gates
  std::vector<size_t>
      // Index of each direction's first parameter; weight_ih, weight_hh, bias_ih, bias_hh are consecutive.
      first_param;
};
std::vector<std::string> OnnxCellWeights(const OnnxLayer& to, const OnnxCell& cell,
                                         const std::string& name);

// Translates a layer of framework/nn/recurrent_layer.h; op is "GRU" or "LSTM".
void TranslateRecurrent(OnnxLayer& to, const std::string& op, const std::vector<size_t>& gates,
                        const std::vector<OnnxAttribute>& attributes);

// GRU: ONNX's z, r, n from PyTorch's r, z, n; linear_before_reset computes n as PyTorch does.
inline const std::vector<size_t> kOnnxGruGates = {1, 0, 2};
inline const std::vector<OnnxAttribute> kOnnxGruAttributes = {{"linear_before_reset", int64_t{1}}};

}  // namespace dtrain
