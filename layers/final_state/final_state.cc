#include "layers/final_state/final_state.h"

#include "framework/core/error.h"
#include "framework/nn/tokens.h"

namespace dtrain {

void FinalState::Configure(config::Reader& reader) {
  bidirectional_ = reader.Bool("bidirectional", false)
                       .Help("the second half of each state is from the reverse direction");
  pad_ = reader.Int("pad", kPadToken)
             .Min(0)
             .Help("token that fills a sentence up to the length of the batch");
}

std::vector<Shape> FinalState::InferShapes(std::span<const Shape> inputs) {
  const Shape &x = inputs[0], &tokens = inputs[1];
  if (x.rank() != 3 || tokens.rank() != 2 || x[0] != tokens[0] || x[1] != tokens[1]) {
    throw ShapeError("inputs of shapes " + x.ToString() + " and " + tokens.ToString() +
                         " do not fit; it takes states [N, T, H] and the tokens [N, T]",
                     "does a recurrent layer over the same tokens come before it?");
  }
  if (bidirectional_ && x[2] % 2 != 0) {
    throw ShapeError("states of length " + std::to_string(x[2]) +
                         " are not of a bidirectional layer, whose length is even",
                     "bidirectional must be what it is in the recurrent layer before it");
  }
  return {{x[0], x[2]}};
}

namespace {
DTRAIN_LAYER("final_state", FinalState, "last state of a recurrent layer, for each sentence");
}

}  // namespace dtrain
