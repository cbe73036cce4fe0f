// What no single key of a run's config can know: whether they fit together.
#include <fmt/format.h>

#include "framework/comm/collective.h"
#include "framework/core/text.h"
#include "framework/data/dataset.h"
#include "framework/runtime/setup/run_config.h"

namespace dtrain {
namespace {

using config::Reader;

// Who may die is a matter of the strategy, and of where its servers are.
void CheckDeaths(Reader cluster, Reader strategy, const RunConfig& run) {
  const std::vector<Death>& deaths = run.cluster.deaths;
  if (deaths.empty()) return;
  const std::string why = run.strategy->StopsAtDeath();
  if (!why.empty()) {
    cluster.AddError("deaths",
                     fmt::format("a death would stop strategy '{}': {}", run.strategy_name, why),
                     fmt::format("{} go on without a dead worker",
                                 Join(StrategiesThatOutliveWorkers(), " and ")),
                     {strategy.At("name"), strategy.At("pull_timeout")});
    return;
  }
  const int per_node = run.cluster.per_node();
  Placement placement = run.strategy->Place(static_cast<int>(run.workers));
  if (placement.nodes() > 0) {
    if (run.workers % per_node != 0) return;  // is an error itself
    placement.node_of = NodesInOrder(static_cast<int>(run.workers), per_node);
  }
  std::vector<Reader> places = cluster.List("deaths");
  for (const DeathError& error : CheckDeaths(deaths, placement, per_node)) {
    places[error.index].AddError(
        "", error.what, error.hint,
        {strategy.At("name"), strategy.At("servers"), strategy.At("placement"),
         cluster.At("workers"), cluster.At("per_node")});
  }
}

// Sums of 16 bits are made by plans of ours.
void CheckRoundedSums(Reader root, const RunConfig& run) {
  if (!run.compress.rounds() || !run.strategy->synchronous() || SumsRounded(run.collective)) return;
  root.AddError("collective",
                fmt::format("collective '{}' sums floats of 32 bits, and compressor '{}' sends 16",
                            run.collective, run.compress.name),
                "collective: ordered, or compress: none",
                {root.Section("compress").At("name"), root.Section("strategy").At("name")});
}

// The keys that decide how many training samples there are: an error in another one leaves the number as meant.
std::vector<config::KeyRef> KeysOfSize(const Reader& data) {
  std::vector<config::KeyRef> keys;
  for (const char* key :
       {"name", "root", "limit", "validation", "train", "train_samples", "train_images",
        "train_labels", "train_source", "train_target", "test", "test_images", "test_share",
        "header", "data_set", "max_length", "tokenized"}) {
    keys.push_back(data.At(key));
  }
  return keys;
}

}  // namespace

void CheckTogether(Reader root, RunConfig& run) {
  Reader cluster = root.Section("cluster");
  Reader strategy = root.Section("strategy");
  const config::KeyRef workers = cluster.At("workers");
  if (run.batch < run.workers) {
    root.AddError("batch",
                  fmt::format("batch {} is smaller than the number of workers ({}, {})", run.batch,
                              run.workers, cluster.Line("workers")),
                  "the workers share the batch: take a larger one, or fewer workers", {workers});
  }
  if (run.accumulate > 1 && run.batch >= run.workers && run.batch / run.workers < run.accumulate) {
    root.AddError("accumulate",
                  fmt::format("accumulate {} cuts a worker's share of {} into parts "
                              "without a sample (batch {}, workers {})",
                              run.accumulate, Counted(run.batch / run.workers, "sample"), run.batch,
                              run.workers),
                  "", {"batch", workers});
  }
  for (const Strategy::KeyError& error : run.strategy->Check(static_cast<int>(run.workers))) {
    if (error.warning) {
      run.warnings.push_back(fmt::format("{}: {}", strategy.Where(error.key), error.what));
    } else {
      std::vector<config::KeyRef> by = {workers};
      by.insert(by.end(), error.by.begin(), error.by.end());
      strategy.AddError(error.key, error.what, error.hint, by);
    }
  }
  const bool nodes = run.strategy && run.strategy->Place(1).nodes() > 0;
  if (nodes && run.cluster.per_node_given && run.workers % run.cluster.per_node() != 0) {
    cluster.AddError(
        "per_node",
        fmt::format("{} cannot be shared out to nodes of {} ({})", Counted(run.workers, "worker"),
                    run.cluster.per_node(), run.strategy_name),
        "cluster.per_node must divide the number of workers", {"workers", strategy.At("name")});
  }
  CheckDeaths(cluster, strategy, run);
  CheckRoundedSums(root, run);
  const int64_t samples = run.data.source ? run.data.source->size(Split::kTrain) : run.batch;
  if (run.batch > samples) {
    Reader data = root.Section("data");
    std::string why;  // the keys that make it so few
    for (const char* key : {"limit", "train_samples"}) {
      if (data.Has(key)) why += fmt::format(" (data.{}, {})", key, data.Line(key));
    }
    root.AddError("batch",
                  fmt::format("batch {} is more than the {} training samples of {}{}", run.batch,
                              samples, run.data.name, why),
                  fmt::format("take a batch of {} or less, or more data", samples),
                  KeysOfSize(data));
  }
  if (run.solver.warmup_epochs > static_cast<double>(run.epochs)) {
    root.Section("solver").AddError(
        "warmup_epochs",
        fmt::format("warm-up of {} epochs is longer than the run ({} epochs, {})",
                    run.solver.warmup_epochs, run.epochs, root.Line("epochs")),
        "", {root.At("epochs")});
  }
}

}  // namespace dtrain
