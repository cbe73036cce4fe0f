#include "framework/evaluate/predictor.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/core/check.h"
#include "framework/core/error.h"
#include "framework/data/device_dataset.h"
#include "framework/data/tables/number_set.h"
#include "framework/setup/run_setup.h"

namespace dtrain {
namespace {

constexpr int64_t kImagesTogether = 64;  // images in one forward pass

// Returns the layer that compares scores with labels: the loss, or else the first metric; -1 if there is none.
int ScoredLayer(const Graph& graph) {
  const auto& layers = graph.layers();
  for (const bool loss : {true, false}) {
    for (size_t l = 0; l < layers.size(); ++l) {
      const LayerRole role = layers[l].layer->role();
      const bool wanted = loss ? role == LayerRole::kLoss : role == LayerRole::kMetric;
      if (wanted && layers[l].inputs.size() == 2) return static_cast<int>(l);
    }
  }
  return -1;
}

std::vector<double> Softmax(std::span<const float> scores) {
  const double largest = *std::ranges::max_element(scores);
  std::vector<double> probabilities;
  for (const float score : scores) probabilities.push_back(std::exp(score - largest));
  const double sum = std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
  for (double& probability : probabilities) probability /= sum;
  return probabilities;
}

// Returns the answer for one sample.  If a binary model has classes, its single score is the probability of class 1.
std::vector<double> AnswerOf(ScoreMeaning meaning, std::span<const float> scores,
                             const ImageSetSpec& spec) {
  if (meaning == ScoreMeaning::kClasses) return Softmax(scores);
  std::vector<double> answer(scores.begin(), scores.end());
  if (meaning == ScoreMeaning::kNumbers) {
    for (size_t k = 0; k < answer.size(); ++k) {
      const auto entry = static_cast<int64_t>(k);
      answer[k] = answer[k] * spec.target_deviation[entry] + spec.target_mean[entry];
    }
    return answer;
  }
  for (double& score : answer) score = 1 / (1 + std::exp(-score));
  if (spec.classes > 0 && answer.size() == 1) answer.insert(answer.begin(), 1 - answer[0]);
  return answer;
}

RunConfig ConfigFor(const std::string& device) {
  config::Document document = config::Document::FromText("{}", "", {"device=" + device});
  return ReadGhostConfig(document);
}

}  // namespace

Predictor::Predictor(const std::string& weights, const std::string& device,
                     const std::optional<CheckpointInfo>& described) {
  const std::filesystem::path path = FindWeights(weights);
  const CheckpointInfo info = described ? *described : ReadStoredInfo(path);
  if (!info.text.empty()) {
    throw CheckpointError(fmt::format("{} is of a model for translation", path.string()),
                          "dtrain translate --weights");
  }
  if (info.images.empty() || info.model_yaml.empty()) {
    throw CheckpointError(
        fmt::format("{} does not contain its model and the format of its images", path.string()),
        "for weights that another program saved, give the config of the run with --config; else "
        "take a checkpoint that this version of dtrain has written, by training on images, or "
        "what `dtrain export` made of it");
  }
  spec_ = ImageSetSpecFromText(info.images, path.string());
  graph_ = std::make_unique<Graph>(
      Graph::FromText(info.model_yaml, path.string() + ": its model", ImageFields(spec_)));
  scored_ = ScoredLayer(*graph_);
  if (scored_ < 0) {
    throw CheckpointError(fmt::format("{}: model '{}' has no loss or metric to take scores from",
                                      path.string(), graph_->name()));
  }
  const GraphLayer& scored = graph_->layers()[static_cast<size_t>(scored_)];
  if (scored.layer->score_meaning() == ScoreMeaning::kNumbers && spec_.classes > 0) {
    throw CheckpointError(fmt::format(
        "{}: model '{}' predicts numbers, not classes: its loss '{}' is the mean squared error",
        path.string(), graph_->name(), scored.name));
  }
  checkpoint_ = LoadWeights(path, ModelLayoutOf(*graph_));
  const RunConfig config = ConfigFor(device);
  CheckDevice(config);
  ExecutionPlan plan = DecidePlan(config, *graph_, 1, ThreadsHere(1));
  net_ = MakeNet(*graph_, {}, plan);
  brought_ = net_->Bring(checkpoint_.weights.data(), checkpoint_.state.data());
}

std::string Predictor::ClassName(int64_t number) const {
  const auto names = static_cast<int64_t>(spec_.class_names.size());
  return number < names ? spec_.class_names[number] : std::to_string(number);
}

std::vector<std::vector<double>> Predictor::Predict(std::vector<uint8_t> images) {
  DT_CHECK(!spec_.numbers);
  const auto count = static_cast<int64_t>(images.size()) / spec_.image_shape.count();
  LabelledImages labelled;
  labelled.images = std::move(images);
  labelled.labels.resize(static_cast<size_t>(count));  // labels are not used
  return Compute(std::make_shared<ImageSet>(spec_, LabelledImages(), std::move(labelled)));
}

std::vector<std::vector<double>> Predictor::Predict(Numbers numbers) {
  DT_CHECK(spec_.numbers);
  const size_t count = CountOf(numbers) / static_cast<size_t>(spec_.image_shape.count());
  LabelledNumbers labelled;
  labelled.samples = std::move(numbers);
  if (spec_.classes > 0) {
    labelled.classes.resize(count);
  } else {
    labelled.targets.resize(count * static_cast<size_t>(spec_.target_shape.count()));
  }
  return Compute(std::make_shared<NumberSet>(spec_, LabelledNumbers(), std::move(labelled)));
}

std::vector<std::vector<double>> Predictor::Compute(std::shared_ptr<const Dataset> samples) {
  const auto set = OnDevice(std::move(samples), net_->device());
  const int64_t count = set->size(Split::kTest);
  Batch batch = set->MakeBatch(std::min(count, kImagesTogether));
  std::vector<std::vector<double>> answers;
  net_->set_observer([&](const KernelTiming& call) {
    if (call.layer != &graph_->layers()[static_cast<size_t>(scored_)]) return;
    const Tensor& scores = call.args->inputs[0];
    const auto classes = static_cast<size_t>(scores.shape.CountFrom(1));
    std::vector<float> values(static_cast<size_t>(scores.shape.count()));
    if (net_->device().queue != nullptr) {
      net_->device().queue->Download(values.data(), scores.data, values.size() * sizeof(float));
      net_->device().Record().Wait();
    } else {
      std::copy_n(scores.f32(), values.size(), values.begin());
    }
    for (size_t begin = 0; begin < values.size(); begin += classes) {
      const auto one = std::span(values).subspan(begin, classes);
      answers.push_back(AnswerOf(call.layer->layer->score_meaning(), one, spec_));
    }
  });
  for (int64_t begin = 0; begin < count; begin += kImagesTogether) {
    std::vector<int64_t> indices(static_cast<size_t>(std::min(kImagesTogether, count - begin)));
    std::iota(indices.begin(), indices.end(), begin);
    batch.Resize(static_cast<int64_t>(indices.size()));
    set->Fill(Split::kTest, indices, kNoEpoch, batch);
    NetInput input;
    input.fields = batch.fields;
    input.on_device = batch.on_device;
    input.samples = batch.samples;
    net_->Evaluate(brought_->weights, brought_->state, input);
  }
  net_->set_observer({});
  DT_CHECK(static_cast<int64_t>(answers.size()) == count) << answers.size() << " of " << count;
  return answers;
}

}  // namespace dtrain
