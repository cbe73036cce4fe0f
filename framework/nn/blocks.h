// Blocks: layers that a model repeats, written once, with arguments.
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
//   - An argument has no default, is given with every use, and replaces whole values: `$width`.
//   - `repeat: 2` puts copies one behind the other and numbers them; without it there is no number.
//   - Inside, names are those of the block's own earlier layers, and `input` is what the block
//     takes: what its `input` key names, else the output of the layer before it.
//   - Outside, the name of a use means the output of its last layer (stage1, and stage1.0).
//   - A block may use the blocks written above it.
#pragma once

#include <string>

#include "framework/config/tree.h"

namespace dtrain {

// Replaces the uses of blocks in `layers` by their layers and takes `blocks` out of the tree.
// `first_input` is what the first layer of the model takes.  What comes out of a block keeps the
// places where it was written, an argument the place where it was given.
void ExpandBlocks(const std::string& first_input, config::Tree& root,
                  config::Diagnostics& diagnostics);

}  // namespace dtrain
