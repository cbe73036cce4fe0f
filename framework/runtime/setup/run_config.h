// RunConfig: what `dtrain train` does, as read and checked from a config (configs/runs/*.yaml).
//
// The sections solver, strategy and data name a registered thing, which reads its own keys.  What
// is here is valid: every error of the file, also between keys, has been reported by then.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "framework/config/reader.h"
#include "framework/data/dataset.h"
#include "framework/sim/cluster_config.h"
#include "framework/solver/solver.h"
#include "framework/strategies/strategy.h"

namespace dtrain {

struct RunConfig {
  struct Data {
    std::string name;
    std::string where;  // of the name: "run.yaml:2:8"
    std::string root;   // "": LocateData's places
    std::shared_ptr<const DatasetSource> source;
    std::exception_ptr problem;  // its files cannot be read: thrown once all keys are right
  };
  // What the run begins with instead of drawn weights.
  struct Weights {
    std::string from;                 // a run folder, checkpoint or safetensors file; "": none
    std::vector<std::string> except;  // layers, by name or pattern, that begin afresh all the same
    std::vector<std::string> freeze;  // layers whose parameters and state stay as they are
  };
  struct Checkpoint {
    int64_t every_epochs = 1;  // 0: not by epochs
    int64_t every_steps = 0;   // 0: not by steps
    int64_t keep = 2;
    bool keep_best = false;         // by the validation split; what the last test is of
    bool takes_other_data = false;  // on resume, with a warning; else they are refused
  };
  // A run may end before its last epoch: at the first evaluation that reaches `target`, or behind
  // `patience` evaluations in a row that were no better than the best.
  struct Stop {
    double target = 0;     // accuracy, perplexity of sentences, or else loss; 0: none
    int64_t patience = 0;  // 0: none
    bool any() const { return target > 0 || patience > 0; }
  };

  std::string model;       // a name or a path, as given
  std::string model_file;  // where it was found
  std::string model_yaml;  // what it says
  Data data;
  Weights weights;
  int64_t batch = 0;             // global
  int64_t accumulate = 1;        // micro-batches of a worker's share
  bool sync_batch_norm = false;  // over all workers
  int64_t epochs = 0;
  int64_t max_steps = 0;  // 0: no limit
  SolverConfig solver;
  std::string strategy_name;
  std::shared_ptr<const Strategy> strategy;
  CompressConfig compress;
  std::string profile =
      "measure";                 // what a schedule by time goes by: that, or a model profile's path
  bool replan = false;           // where it does: anew at epochs, when times have changed
  bool timeline = false;         // write timeline.json
  bool tensorboard = false;      // write event files for TensorBoard
  int64_t statistics_every = 0;  // steps between two that gradients.jsonl tells about; 0: none
  bool record = false;           // note the order of events, for `dtrain simulate --replay`
  std::string collective;
  bool overlap_buckets = false;  // sums of several buckets in flight at once
  bool window = true;            // ranks of a node read each other's vectors where they lie
  int64_t workers = 1;
  bool workers_given = false;   // by file or override, not by default
  ClusterConfig cluster;        // how it is paced, or simulated
  std::vector<int> node_of;     // the node of each worker, where PlaceOnHosts or a record said so
  std::vector<int> rank_hosts;  // the host of each rank, where PlaceOnHosts said so
  std::string device;           // "auto", "cpu", "cuda"
  std::string precision;        // "fp32", "tf32", "bf16"
  int64_t threads = 0;          // of a rank; 0: by rule
  uint64_t seed = 1;
  int64_t evaluate_every_epochs = 1;  // 0: not by epochs
  int64_t evaluate_every_steps = 0;   // 0: not by steps
  Stop stop;
  Checkpoint checkpoint;
  int64_t log_first_steps = 0;   // each of the first steps is logged, then
  int64_t log_every_steps = 0;   // every n-th
  double stall_seconds = 0;      // 0: by measured step time
  std::string plan;              // "auto" or a plan file
  std::string output;            // run folder, placeholders filled in (the time is this process's:
                                 // ranks that were not given a folder must take rank 0's)
  bool output_has_time = false;  // runs that start together would share the name (MakeOwnFolder)

  std::vector<std::string> warnings;  // of what is valid and not what it seems, with its line
  std::vector<std::string> notes;     // what a run does that its keys do not say

  std::string effective_yaml;  // every key with its value; run again, it does the same
  std::string effective_json;  // the same as JSON
  std::string config_sha256;   // of effective_yaml without `output`
};

// Reads all keys and ends the document (Document::Finish): throws ConfigError with every error.
// For Document::Empty the result is all defaults, with no data source, strategy or model file.
RunConfig ReadRunConfig(config::Document& document);

// The same for a config whose model is at hand as text, not as a file: that of a recorded run.
RunConfig ReadRunConfig(config::Document& document, const std::string& model_yaml);

// The same config once more, with other keys outside the sections model and data: those of `before`
// stay, and none of their files is read again.
RunConfig ReadRunConfig(config::Document& document, const RunConfig& before);

// The same without the sections model and data: for simulations of a model profile.
RunConfig ReadGhostConfig(config::Document& document);

// The sections model, data and weights (run_inputs.cc).  `before`: whose model and data these are; null: they
// are looked at.
void ReadInputs(config::Reader root, const std::string& config_file, const RunConfig* before,
                RunConfig& run);

// Notes the errors of keys that do not fit together, once all are read (run_checks.cc).
void CheckTogether(config::Reader root, RunConfig& run);

// All keys of section `strategy` but its name: those of `strategy`, and what others read for it.
void ReadStrategyKeys(config::Reader reader, Strategy& strategy, RunConfig& run);

// The key of section `compress` that is for sums over all workers of what was selected.
void ReadSelectionExchange(config::Reader compress, CompressConfig& config);

// `output` with {config} (the config's file name without folder and ending) and {time} filled in.
// Throws ConfigError for any other {word}.
std::string ExpandOutput(const std::string& output, const std::string& config_file,
                         const std::string& time);

// Local time as run folders carry it: "20250131-235959".
std::string TimeStamp();

}  // namespace dtrain
