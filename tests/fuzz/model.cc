// Reads model files - blocks, layers, shapes and parameters - and sets up their graph as `dtrain
// check` does.
#include "framework/nn/graph.h"
#include "tests/fuzz/fuzz_target.h"

namespace dtrain::fuzz {
namespace {

std::vector<FieldSpec> Images() {
  return {{"data", DType::kF32, Shape{3, 8, 8}, 0}, {"label", DType::kI32, Shape{}, 10}};
}

std::vector<FieldSpec> Sentences() {
  return {{"source", DType::kI32, Shape{8}, 20},
          {"target", DType::kI32, Shape{8}, 20},
          {"label", DType::kI32, Shape{8}, 20}};
}

void Check(const Graph& graph) {
  Require(!graph.layers().empty(), "a model without layers was taken");
  int64_t end = 0;
  for (const ArenaEntry& entry : graph.weights().entries) {
    Require(entry.range.begin == end && entry.range.end >= end, "a parameter lies elsewhere");
    end = entry.range.end;
  }
  for (const GraphLayer& layer : graph.layers()) {
    Require(layer.cost.forward_flops >= 0, "a layer has a negative cost");
  }
  graph.Describe();
  graph.CheckTrainable(4);
}

// The last byte chooses the model's inputs: its own, images or sentences.
bool Model(std::string_view input) {
  const std::string text(input);
  const uint8_t choice = input.empty() ? 0 : static_cast<uint8_t>(input.back()) % 3;
  return Accepts(ExitCode::kUsage, [&] {
    Check(Graph::FromText(text, "model.yaml",
                          choice == 0   ? std::vector<FieldSpec>{}
                          : choice == 1 ? Images()
                                        : Sentences()));
  });
}

DTRAIN_FUZZ_TARGET("model", Model);

}  // namespace
}  // namespace dtrain::fuzz
