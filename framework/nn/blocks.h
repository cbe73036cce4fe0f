// A block is a group of layers that a model writes once, with arguments, and uses several times.
//
//   blocks:
//     conv_relu:
//       arguments: [width]
//       layers:
//         - {name: conv, type: convolution, outputs: $width, kernel: 3, pad: 1}
//         - {name: relu, type: relu}
//   layers:
//     - {name: stage1, block: conv_relu, width: 64, repeat: 2}
//     - {name: stage2, block: conv_relu, width: 128, input: stage1}
//
// stands for the layers stage1.0.conv, stage1.0.relu, stage1.1.conv, stage1.1.relu, stage2.conv and
// stage2.relu.
//   - An argument has no default, must be given at every use, and replaces whole values: `$width`.
//   - `repeat: 2` chains two copies and numbers them; without it there is no number.
//   - Inside, names refer to the block's own earlier layers, and `input` to the block's input:
//     the value that the use's `input` key names, else the output of the layer before it.
//   - Outside, the name of a use means the output of its last layer (stage1, and stage1.0).
//   - A block may use the blocks written above it.
#pragma once

#include <string>

#include "framework/config/tree.h"

namespace dtrain {

// Replaces the uses of blocks in `layers` by their layers and takes `blocks` out of the tree.
// `first_input` is the input of the model's first layer.  For messages, a block's layers keep their positions in the
// block, and arguments those in the use.
void ExpandBlocks(const std::string& first_input, config::Tree& root,
                  config::Diagnostics& diagnostics);

}  // namespace dtrain
