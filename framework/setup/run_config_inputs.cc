// Reads the sections model, data and weights of a config.
#include <fmt/format.h>

#include <filesystem>

#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/data/dataset.h"
#include "framework/setup/locate_model.h"
#include "framework/setup/run_config.h"

namespace dtrain {
namespace {

using config::Reader;

void ReadModelKeys(Reader root, const std::string& config_file, RunConfig& run) {
  Reader reader = root.Section("model", "the model to train");
  run.model = static_cast<std::string>(
      reader.String("name", "")
          .Required()
          .Help("name of a model in configs/models, or the path of a model file"));
  if (run.model.empty()) return;
  if (!run.model_yaml.empty()) {
    run.model_file = run.model;
    return;
  }
  run.model_file = LocateModel(run.model, config_file).string();
  if (!run.model_file.empty()) {
    log::Debug("model {} is {}", run.model, run.model_file);
    run.model_yaml = config::ReadConfigText(run.model_file);
    return;
  }
  reader.AddError("name", "model.name: there is no model '" + run.model + "'",
                  ModelHint(run.model, config_file));
}

void ReadData(Reader root, const RunConfig* before, RunConfig& run) {
  Reader reader = root.Section("data", "the data set to train on");
  run.data.name =
      static_cast<std::string>(reader.String("name", "")
                                   .Required()
                                   .OneOf(DatasetRegistry::Names())
                                   .Help("name of a data set; dtrain data list shows them"));
  run.data.where = reader.Where("name");
  run.data.root = static_cast<std::string>(
      reader.String("root", "")
          .Help("folder that holds the data set's folder; \"\": $DTRAIN_DATA, then the cache"));
  const int64_t limit =
      reader.Int("limit", 0).Min(0).Help("use only the first N samples of each split; 0: use all");
  const double validation =
      reader.Number("validation", 0)
          .Min(0)
          .Max(0.5)
          .Help("share of the training samples that is set aside for validation; 0: none");
  if (run.data.name.empty()) return;
  std::shared_ptr<DatasetSource> source = DatasetRegistry::Get("data set", run.data.name).make();
  if (before != nullptr) {
    source->ConfigureKeys(reader);
    run.data = before->data;
    return;
  }
  if (limit > 0) source->KeepFirst(limit);
  try {
    source->Configure(reader);
  } catch (const DataError&) {
    // An error in a data file is reported after the errors of the keys.
    run.data.problem = std::current_exception();
    return;
  }
  if (source->is_own() && !run.data.root.empty()) {
    reader.AddError("root", fmt::format("'{}' names its files itself", run.data.name),
                    "leave root out; paths are as they are, or begin where dtrain is started",
                    {"name"});
  }
  // Errors in its files have already been reported.
  if (source->is_own() && source->size(Split::kTrain) == 0) return;
  run.data.source = std::move(source);
  if (limit > 0) run.data.source = LimitSource(run.data.source, limit);
  if (validation > 0 && run.data.source->has_validation()) {
    reader.AddError("validation",
                    fmt::format("data set '{}' has a validation split of its own", run.data.name),
                    "leave the key out", {"name"});
  }
  run.data.source = HoldOut(run.data.source, validation);
}

void ReadWeights(Reader root, RunConfig& run) {
  Reader reader = root.Section("weights", "what the run begins with instead of drawn weights");
  run.weights.from =
      static_cast<std::string>(reader.String("from", "")
                                   .Help("a run folder, a checkpoint or a safetensors file; \"\": "
                                         "none; --weights goes first"));
  run.weights.except = static_cast<std::vector<std::string>>(
      reader.Strings("except", {})
          .Help("layers that begin with drawn weights all the same, by name or pattern: [fc3, "
                "conv4*]"));
  run.weights.freeze = static_cast<std::vector<std::string>>(
      reader.Strings("freeze", {})
          .Help("layers whose parameters and statistics stay as they are, by name or pattern"));
}

}  // namespace

void ReadInputs(Reader root, const std::string& config_file, const RunConfig* before,
                RunConfig& run) {
  ReadModelKeys(root, config_file, run);
  ReadData(root, before, run);
  ReadWeights(root, run);
}

}  // namespace dtrain
