// Predictor: the classes of images, by saved weights that know their model and their images.  Nothing else is
// needed: no config, no data set.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/data/images/image_set.h"
#include "framework/nn/net.h"
#include "framework/runtime/weights/weights_file.h"

namespace dtrain {

class Predictor {
 public:
  // A checkpoint, run folder or safetensors file, computed on `device` ("auto", "cpu", "cuda").  Throws
  // CheckpointError where it is of another kind of model or older than what Predictor needs, else as LoadWeights.
  Predictor(const std::string& weights, const std::string& device);

  // What the images must be.
  const ImageSetSpec& images() const { return spec_; }
  const std::string& model() const { return graph_->name(); }
  std::string ClassName(int64_t number) const;

  // The probability of each class (softmax of the model's scores) for images of that shape, one after the other.
  std::vector<std::vector<double>> Predict(std::vector<uint8_t> images);
  // The same of a model for numbers.  Where it has no classes, its scores, or the probability of 1 each.
  std::vector<std::vector<double>> Predict(std::vector<float> numbers);

 private:
  // Of the test split.
  std::vector<std::vector<double>> Compute(std::shared_ptr<const Dataset> samples);

  ImageSetSpec spec_;
  std::unique_ptr<Graph> graph_;
  int scored_ = -1;  // the layer whose first input are the scores
  Checkpoint checkpoint_;
  std::unique_ptr<Net> net_;
  std::optional<BroughtModel> brought_;
};

}  // namespace dtrain
