// ONNX's GRU and LSTM, for the recurrent layers and for a decoder that has a cell of the kind.
//
// ONNX has the gates in another order than PyTorch (GRU: z, r, n; LSTM: i, o, f, g), one tensor for all directions and
// the time as the first axis.
#pragma once

#include <vector>

#include "framework/onnx/onnx_layer.h"

namespace dtrain {

// int32 [N]: how many tokens stand before the padding of int64 `tokens` [N, T].
std::string OnnxLengths(const OnnxLayer& to, const std::string& tokens, int64_t pad);

// The operator's inputs W [D, G H, I], R [D, G H, H] and B [D, 2 G H] of one or two directions.
struct OnnxCell {
  int64_t hidden = 0;
  std::vector<size_t> gates;  // PyTorch's place of each of ONNX's gates
  std::vector<size_t>
      first_param;  // of each direction; its weight_ih, weight_hh, bias_ih, bias_hh follow
};
std::vector<std::string> OnnxCellWeights(const OnnxLayer& to, const OnnxCell& cell,
                                         const std::string& name);

// A layer of framework/nn/recurrent_layer.h; op is "GRU" or "LSTM".
void TranslateRecurrent(OnnxLayer& to, const std::string& op, const std::vector<size_t>& gates,
                        const std::vector<OnnxAttribute>& attributes);

// GRU: z, r, n of PyTorch's r, z, n; n is computed as PyTorch does.
inline const std::vector<size_t> kOnnxGruGates = {1, 0, 2};
inline const std::vector<OnnxAttribute> kOnnxGruAttributes = {{"linear_before_reset", int64_t{1}}};

}  // namespace dtrain
