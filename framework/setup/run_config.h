// RunConfig: everything that `dtrain train` does, as read from a config (configs/runs/*.yaml) and checked.
//
// Each of the sections solver, strategy and data names a registered object that reads its own keys.  A RunConfig is
// valid: every error of the file, also between keys, has been reported before.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "framework/cluster/cluster_config.h"
#include "framework/config/reader.h"
#include "framework/data/dataset.h"
#include "framework/solver/solver.h"
#include "framework/strategies/strategy.h"

namespace dtrain {

struct RunConfig {
  struct Data {
    std::string name;
    std::string where;  // position of the name: "run.yaml:2:8"
    std::string root;   // "": the folders that LocateData searches
    std::shared_ptr<const DatasetSource> source;
    std::exception_ptr problem;  // an error of its files; thrown once all keys are checked
  };
  // The weights with which the run begins, instead of drawn ones.
  struct Weights {
    std::string from;  // a run folder, checkpoint or safetensors file; "": none
    // Layers, by name or pattern, that are initialised anew nevertheless.
    std::vector<std::string> except;
    std::vector<std::string> freeze;  // layers whose parameters and state are not trained
  };
  struct Checkpoint {
    int64_t every_epochs = 1;  // 0: no checkpoints by epochs
    int64_t every_steps = 0;   // 0: no checkpoints by steps
    int64_t keep = 2;
    bool keep_best = false;         // best by the validation split; used for the final test
    bool takes_other_data = false;  // accept other data on resume, with a warning; else refuse
  };
  // A run may end before its last epoch: at the first evaluation that reaches `target`, or after `patience` evaluations
  // in a row that were no better than the best.
  struct Stop {
    double target = 0;     // accuracy; else perplexity of sentences, or loss; 0: none
    int64_t patience = 0;  // 0: patience is unlimited
    bool any() const { return target > 0 || patience > 0; }
  };

  std::string model;       // name or path, as given in the config
  std::string model_file;  // the file found
  std::string model_yaml;  // the file's text
  Data data;
  Weights weights;
  int64_t batch = 0;             // samples of a step, over all workers
  int64_t accumulate = 1;        // micro-batches per step of a worker
  bool sync_batch_norm = false;  // batch norm over all workers
  int64_t epochs = 0;
  int64_t max_steps = 0;  // 0: no limit
  SolverConfig solver;
  std::string strategy_name;
  std::shared_ptr<const Strategy> strategy;
  CompressConfig compress;
  // "measure", or the path of the model profile by which the schedule is planned.
  std::string profile = "measure";
  bool replan = false;           // plan anew at the end of an epoch when times have changed
  bool timeline = false;         // write timeline.json
  bool tensorboard = false;      // write event files for TensorBoard
  int64_t statistics_every = 0;  // steps between two lines of gradients.jsonl; 0: none
  bool record = false;           // record the order of events, for `dtrain simulate --replay`
  std::string collective;
  bool overlap_buckets = false;  // several all-reduces in flight at once
  bool window = true;            // ranks of a node read each other's vectors in shared memory
  int64_t workers = 1;
  bool workers_given = false;   // given by the file or an override, not the default
  ClusterConfig cluster;        // the machines that are simulated, or paced
  std::vector<int> node_of;     // node of each worker, if PlaceOnHosts or a record gave it
  std::vector<int> rank_hosts;  // host of each rank, if PlaceOnHosts gave it
  std::string device;           // "auto", "cpu", "cuda"
  std::string precision;        // "fp32", "tf32", "bf16"
  int64_t threads = 0;          // threads of a rank; 0: by rule
  uint64_t seed = 1;
  int64_t evaluate_every_epochs = 1;  // 0: not by epochs
  int64_t evaluate_every_steps = 0;   // 0: not by steps
  Stop stop;
  Checkpoint checkpoint;
  int64_t log_first_steps = 0;  // each of the first N steps is logged
  int64_t log_every_steps = 0;  // afterwards every N-th step
  double stall_seconds = 0;     // 0: derived from the measured step time
  std::string plan;             // "auto" or a plan file
  // Run folder, with placeholders filled in.  {time} is this process's: ranks that were not given a folder must take
  // rank 0's.
  std::string output;
  // Runs that start at the same time would get the same name (MakeOwnFolder).
  bool output_has_time = false;

  // Warnings about valid keys with a surprising effect, with their line.
  std::vector<std::string> warnings;
  std::vector<std::string> notes;  // remarks on what the run does beyond its keys

  std::string effective_yaml;  // every key with its value; it runs the same run again
  std::string effective_json;  // the same config as JSON
  std::string config_sha256;   // hash of effective_yaml without `output`
};

// Reads all keys and ends the document (Document::Finish).  Throws ConfigError with every error.  For Document::Empty,
// the result has all defaults and no data source, strategy or model file.
RunConfig ReadRunConfig(config::Document& document);

// The same for a recorded run, whose model is given as text and not as a file.
RunConfig ReadRunConfig(config::Document& document, const std::string& model_yaml);

// Reads a config again that differs only in keys outside the sections model and data.  These sections are taken from
// `before`, and none of their files is read again.
RunConfig ReadRunConfig(config::Document& document, const RunConfig& before);

// The same without the sections model and data: for simulations of a model profile.
RunConfig ReadGhostConfig(config::Document& document);

// Reads the sections model, data and weights (run_config_inputs.cc).  The model and data are copied from `before` if it is not
// null, else read from their files.
void ReadInputs(config::Reader root, const std::string& config_file, const RunConfig* before,
                RunConfig& run);

// Notes the errors of keys that do not fit together, once all are read.
void CheckTogether(config::Reader root, RunConfig& run);

// Reads all keys of the section `strategy` except its name: those of `strategy`, and those that other parts read there.
void ReadStrategyKeys(config::Reader reader, Strategy& strategy, RunConfig& run);

// Reads the key of the section `compress` that chooses the sparse all-reduce.
void ReadSelectionExchange(config::Reader compress, CompressConfig& config);

// Returns `output` with {config} (the config's file name without folder and extension) and {time} filled in.  Throws
// ConfigError for any other {word}.
std::string ExpandOutput(const std::string& output, const std::string& config_file,
                         const std::string& time);

// Returns the local time in the form used in names of run folders: "20250131-235959".
std::string TimeStamp();

}  // namespace dtrain
