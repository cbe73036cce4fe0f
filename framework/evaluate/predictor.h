// Predictor: predicts classes with saved weights.  The file contains the model and the properties of its images; for a
// file of another program, which lacks them, the caller gives both.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/checkpoint/weights_file.h"
#include "framework/data/images/image_set.h"
#include "framework/data/tables/numbers.h"
#include "framework/nn/net.h"

namespace dtrain {

class Predictor {
 public:
  // `weights` is a checkpoint, run folder or safetensors file; `device` is "auto", "cpu" or "cuda".  Throws
  // CheckpointError if the file is of another kind of model or does not contain its model and images, and the errors
  // of LoadWeights.  `described`, if given, has model_yaml and images (or text) in place of the file's.
  Predictor(const std::string& weights, const std::string& device,
            const std::optional<CheckpointInfo>& described = {});

  // Returns the shape and properties that the images must have.
  const ImageSetSpec& images() const { return spec_; }
  const std::string& model() const { return graph_->name(); }
  std::string ClassName(int64_t number) const;

  // Returns the probability of each class (softmax of the model's scores) for each of the concatenated images.
  std::vector<std::vector<double>> Predict(std::vector<uint8_t> images);
  // Does the same for a model whose samples are vectors of numbers.  For a model without classes it returns the scores,
  // or for each score the probability of 1.  Scores of the mean squared error are in the unit of the labels.
  std::vector<std::vector<double>> Predict(Numbers numbers);

 private:
  // Computes the answers for the test split of `samples`.
  std::vector<std::vector<double>> Compute(std::shared_ptr<const Dataset> samples);

  ImageSetSpec spec_;
  std::unique_ptr<Graph> graph_;
  int scored_ = -1;  // the layer whose first input is the scores
  Checkpoint checkpoint_;
  std::unique_ptr<Net> net_;
  std::optional<BroughtModel> brought_;
};

}  // namespace dtrain
