#include "layers/embedding/embedding.h"

#include "framework/core/error.h"
#include "framework/nn/initializer.h"
#include "framework/nn/tokens.h"

namespace dtrain {

void Embedding::Configure(config::Reader& reader) {
  outputs_ = reader.Int("outputs", 1)
                 .Required()
                 .Min(1)
                 .Max(kLargestExtent)
                 .Help("length of a token's vector");
  vocabulary_ = ReadVocabulary(reader);
  weight_init_ =
      ReadInitSpec(reader.Section("weight_init", "initial values of the vectors"), {"gaussian", 1});
}

void Embedding::SetInputClasses(std::span<const int64_t> classes) {
  vocabulary_ = VocabularyOf(vocabulary_, classes[0], "it reads");
}

std::vector<Shape> Embedding::InferShapes(std::span<const Shape> inputs) {
  const Shape& tokens = inputs[0];
  if (tokens.rank() < 1 || tokens.rank() + 1 > Shape::kMaxRank) {
    throw ShapeError("an input of shape " + tokens.ToString() + " is no batch of tokens");
  }
  std::vector<int64_t> extents;
  for (int axis = 0; axis < tokens.rank(); ++axis) extents.push_back(tokens[axis]);
  extents.push_back(outputs_);
  return {Shape(extents)};
}

std::vector<ParamSpec> Embedding::Params() const {
  return {{"weight", {vocabulary_, outputs_}, weight_init_, vocabulary_, outputs_}};
}

Cost Embedding::CostOf(std::span<const Shape> inputs) const {
  const auto numbers = static_cast<double>(inputs[0].count() * outputs_);
  return {numbers, numbers};
}

namespace {
DTRAIN_LAYER("embedding", Embedding, "a learned vector for each token");
}

}  // namespace dtrain
