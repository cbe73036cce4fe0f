// A model in evaluation as ONNX graphs, by what its layers say of themselves (onnx_layer.h).
//
// What leads to the scores is translated: the first input of each loss or, without losses, of each metric, or else what
// no layer reads.  Losses, metrics and labels are left out.  The one output is called "logits" ("outputs" where the
// loss is mean_squared_error); of several, or where a layer is called so, each has the name of the layer that makes it.
// Inputs have the names of the model's; axis 0 is "batch", of any size, and where all inputs are words, an axis that
// follows the sentence's is "length".  Tokens are int64.
//
// A model with a decoder becomes two graphs: the encoder, whose outputs are the decoder's inputs, and one step.
#pragma once

#include <vector>

#include "framework/onnx/onnx_layer.h"

namespace dtrain {

// One graph; of a model with a decoder "encoder" and "decoder" (OnnxGraph::name ends so).  Throws UsageError that
// names every layer without a translation.
std::vector<OnnxGraph> TranslateModel(const OnnxModel& model);

}  // namespace dtrain
