// `dtrain eval`: exact evaluation of saved weights on a split, with bit-identical results for any number of ranks (it
// also runs under mpirun or srun).
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/checkpoint/weights_file.h"
#include "framework/cli/command.h"
#include "framework/core/log.h"
#include "framework/core/printable.h"
#include "framework/core/progress_display.h"
#include "framework/core/status_line.h"
#include "framework/core/text.h"
#include "framework/data/device_dataset.h"
#include "framework/device/cpu/threads.h"
#include "framework/evaluate/guessing.h"
#include "framework/evaluate/run_evaluation.h"
#include "framework/launch/world.h"
#include "framework/setup/run_setup.h"
#include "framework/setup/trained_data.h"
#include "framework/train/estimated_state.h"

namespace dtrain {
namespace {

struct EvalOptions {
  ConfigOptions config;
  std::string weights;
  std::string split = "test";
  std::string statistics = "stored";
  SearchOptions search;
};

void Print(const Evaluation& evaluation, const std::vector<std::string>& metrics,
           const std::string& split, const std::optional<Guess>& guess, bool guessing, bool json) {
  if (json) {
    nlohmann::json result = {{"samples", evaluation.samples}, {"loss", evaluation.loss}};
    for (size_t m = 0; m < metrics.size(); ++m) result[metrics[m]] = evaluation.metrics[m];
    if (evaluation.perplexity) result["perplexity"] = *evaluation.perplexity;
    if (evaluation.bleu) result["bleu"] = *evaluation.bleu;
    if (guess) {
      if (guess->loss) {
        result["guess_loss"] = *guess->loss;
      } else {
        result["guess_accuracy"] = guess->accuracy;
      }
      if (guessing) result["guessing"] = true;
    }
    std::cout << JsonText(result) << '\n';
    return;
  }
  RunResults results(metrics);
  results.Note({}, Split::kTest, evaluation);
  std::cout << fmt::format("{} ({})\n", TestText(*results.test(), split),
                           Counted(evaluation.samples, "sample"));
}

Split SplitOf(const EvalOptions& options, const Dataset& dataset) {
  if (options.split == "test") return Split::kTest;
  if (options.split == "train") return Split::kTrain;
  if (dataset.has_validation()) return Split::kValidation;
  throw UsageError("the data set has no validation split", "take --split test");
}

// Replaces the batch-norm statistics of the weights by an estimate.
void EstimateState(Transport& transport, const RunConfig& config, const Dataset& dataset, Net& net,
                   Checkpoint& checkpoint) {
  const int64_t samples = std::min(config.evaluate.statistics_samples, dataset.size(Split::kTrain));
  const Sampler sampler(config.seed, dataset, config.batch);
  const std::vector<BatchState> mine =
      EstimateBatches(net, dataset, sampler, samples, checkpoint.weights.data(), checkpoint.state,
                      transport.rank(), transport.size());
  JoinStates(transport, mine, checkpoint.state);
}

int Evaluate(const EvalOptions& options, World& world, bool json) {
  Transport& transport = world.transport();
  RunConfig config;
  std::unique_ptr<Graph> graph;
  std::unique_ptr<Dataset> dataset;
  Checkpoint checkpoint;
  Split split = Split::kTest;
  std::optional<BusyProgress> busy;
  if (transport.rank() == 0) busy.emplace("loading data");
  TryTogether(transport, [&] {
    const std::filesystem::path weights = FindWeights(options.weights);
    config = LoadConfigOf(options.config, weights);
    CheckDevice(config);
    dataset = LoadData(config);
    split = SplitOf(options, *dataset);
    graph = std::make_unique<Graph>(ReadModel(config, dataset->fields()));
    DecideTargets(*graph, *dataset);
    checkpoint = LoadWeights(weights, ModelLayoutOf(*graph, *dataset));
    const bool tell = transport.rank() == 0;
    const std::string normalised = NormaliseAsTrained(checkpoint.info, weights.string(), *dataset);
    CheckTrainedOn(checkpoint.info, weights.string(), *dataset, tell);
    if (tell && !normalised.empty()) log::Warning("{}", normalised);
  });
  if (transport.rank() == 0) {
    TellDevice(config);
    TellData(config, *dataset);
    busy.reset();
    busy.emplace("evaluating");
  }
  ExecutionPlan plan =
      DecidePlan(config, *graph, transport.size(),
                 AgreeOnThreads(transport, GatherCpus(transport), transport.size()));
  const std::unique_ptr<Net> net = MakeNet(*graph, {}, plan);
  const auto samples = OnDevice(std::move(dataset), net->device());
  if (options.statistics == "estimated" && !checkpoint.state.empty()) {
    EstimateState(transport, config, *samples, *net, checkpoint);
  }
  const Evaluation evaluation = JoinScores(
      transport, *samples,
      ScoreSplit(*net, *samples, split, checkpoint.weights.data(), checkpoint.state.data(),
                 transport.rank(), transport.size(), options.search));
  busy.reset();
  if (transport.rank() != 0) return 0;
  const std::optional<Guess> guess = GuessOf(*graph, *samples, split);
  const double judged = guess && !guess->loss ? evaluation.metrics.at(0) : evaluation.loss;
  const bool guessing = guess && IsGuessing(judged, *guess);
  Print(evaluation, net->metric_names(), options.split, guess, guessing, json);
  if (!std::isfinite(evaluation.loss)) {
    throw DivergedError(
        "the loss is not finite, though every weight is",
        "the weights are too large for 32-bit numbers; train with a lower learning rate");
  }
  if (guessing) {
    log::Warning("{}", GuessText(judged, *guess, options.split));
  }
  return 0;
}

int RunEval(const EvalOptions& options, const Invocation& invocation) {
  LimitSpinning(invocation.argv);
  const status_line::WipeOnSignal wipe;
  return RunOnRanks(invocation.argc, invocation.argv,
                    [&](World& world) { return Evaluate(options, world, invocation.json); });
}

}  // namespace

static void AddEvalCommand(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<EvalOptions>();
  CLI::App* command =
      AddCommand(app, invocation, "eval", "evaluate saved weights (on the test split by default)",
                 [options, &invocation] { return RunEval(*options, invocation); });
  AddOptionalConfigOptions(*command, options->config);
  command
      ->add_option("--weights", options->weights,
                   "a checkpoint, a run folder or a safetensors file")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("--split", options->split,
                   "split of the data set; train is read without augmentation")
      ->capture_default_str()
      ->check(CLI::IsMember({"test", "validation", "train"}));
  command
      ->add_option("--statistics", options->statistics,
                   "batch-norm statistics: those stored with the weights, or estimated anew from "
                   "evaluate.statistics_samples training samples")
      ->capture_default_str()
      ->check(CLI::IsMember({"stored", "estimated"}));
  AddSearchOptions(*command, options->search);
}

DTRAIN_COMMAND("eval", 20, AddEvalCommand);

}  // namespace dtrain
