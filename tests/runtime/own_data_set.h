// A data set of the test's own, by formula: one row of numbers and one label per sample.  A run loads it instead of the
// data set in its config.
#pragma once

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/data/dataset.h"
#include "framework/setup/run_config.h"

namespace dtrain {

struct OwnData {
  // Called with the training samples that are requested from one set.
  using Watch = std::function<void(uint64_t epoch, std::span<const int64_t> samples)>;

  int64_t train_samples = 0, test_samples = 0;
  int64_t numbers = 1;  // numbers per sample
  int64_t classes = 2;
  std::function<double(Split split, int64_t sample, int64_t i)> number;
  std::function<int64_t(int64_t sample)> label;
  std::function<Watch()> watch = {};  // called when a set is loaded, once per rank; may be empty

  int64_t size(Split split) const { return split == Split::kTrain ? train_samples : test_samples; }
  std::vector<FieldSpec> fields() const {
    return {{"data", DType::kF32, Shape{numbers}, 0}, {"label", DType::kI32, Shape{}, classes}};
  }
};

class OwnDataSet : public Dataset {
 public:
  explicit OwnDataSet(OwnData data) : data_(std::move(data)) {
    if (data_.watch) watch_ = data_.watch();
  }
  int64_t size(Split split) const override { return data_.size(split); }
  std::vector<FieldSpec> fields() const override { return data_.fields(); }
  int64_t classes() const override { return data_.classes; }
  std::string ManifestHash() const override { return "own"; }
  void Fill(Split split, std::span<const int64_t> indices, uint64_t epoch,
            Batch& batch) const override {
    float* to = batch.fields[0].f32();
    for (size_t r = 0; r < indices.size(); ++r) {
      for (int64_t i = 0; i < data_.numbers; ++i) {
        *to++ = static_cast<float>(data_.number(split, indices[r], i));
      }
      batch.fields[1].i32()[r] = static_cast<int32_t>(data_.label(indices[r]));
    }
    if (watch_ && split == Split::kTrain) watch_(epoch, indices);
  }

 private:
  const OwnData data_;
  OwnData::Watch watch_;
};

class OwnSource : public DatasetSource {
 public:
  explicit OwnSource(OwnData data) : data_(std::move(data)) {}
  std::vector<FieldSpec> fields() const override { return data_.fields(); }
  int64_t size(Split split) const override { return data_.size(split); }
  int64_t classes() const override { return data_.classes; }
  std::unique_ptr<Dataset> Load(const std::filesystem::path&, uint64_t) const override {
    return std::make_unique<OwnDataSet>(data_);
  }

 private:
  const OwnData data_;
};

// A run of 99 epochs with one thread, of one inner product on that set, in batches of 16, with --set `overrides`; the
// model file and the run's folder `run` are in `folder`.
inline RunConfig OnALine(const std::filesystem::path& folder, OwnData data,
                         std::vector<std::string> overrides) {
  std::ofstream(folder / "model.yaml") << R"(
name: line
layers:
  - {name: fc, type: inner_product, outputs: 2}
  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}
)";
  overrides.insert(overrides.begin(), {"output=" + (folder / "run").string(), "threads=1"});
  config::Document document = config::Document::FromText(
      "model: {name: " + (folder / "model.yaml").string() +
          "}\ndata: {name: digits}\nbatch: 16\nepochs: 99\nsolver: {name: sgd, lr: 0.01}\n",
      "run.yaml", overrides);
  RunConfig config = ReadRunConfig(document);
  config.data.source = std::make_shared<OwnSource>(std::move(data));
  return config;
}

}  // namespace dtrain
