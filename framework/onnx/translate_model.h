// Translates a model in evaluation mode to ONNX graphs, with the layers' own translations (onnx_layer.h).
//
// The layers that lead to the scores are translated: to the first input of each loss or, without losses, of each
// metric, or else to the values that no layer reads.  Losses, metrics and labels are left out.  A single output is
// called "logits" ("outputs" if the loss is mean_squared_error); several outputs, or one whose name a layer already
// has, are named after the layers that compute them.  Inputs keep the model's names; axis 0 is "batch", of any size,
// and if all inputs are words, an axis that follows the sentence's length is "length".  Tokens are int64.
//
// A model with a decoder becomes two graphs: the encoder, whose outputs are the decoder's inputs, and one step.
#pragma once

#include <vector>

#include "framework/onnx/onnx_layer.h"

namespace dtrain {

// Returns the values of the model that are the outputs of its graph, in their order.
std::vector<int> OutputsOf(const Graph& graph);

// Returns one graph or, for a model with a decoder, two, whose OnnxGraph::name ends in "encoder" and "decoder".  Throws
// UsageError that names every layer without a translation.
std::vector<OnnxGraph> TranslateModel(const OnnxModel& model);

}  // namespace dtrain
