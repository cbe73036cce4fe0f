// RunConfig: everything that `dtrain train` does, as read from a config (configs/runs/*.yaml) and checked.
//
// Each section is read by the part that owns it (solver/solver.h, data/data_config.h).  The sections solver, strategy
// and data name a registered object that reads its own keys.  A RunConfig is valid: every error of the file, also
// between keys, has been reported before.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/checkpoint/checkpoint_config.h"
#include "framework/cluster/cluster_config.h"
#include "framework/config/reader.h"
#include "framework/core/compress_cost.h"
#include "framework/data/data_config.h"
#include "framework/setup/evaluate_config.h"
#include "framework/setup/locate_model.h"
#include "framework/solver/solver.h"
#include "framework/strategies/strategy.h"

namespace dtrain {

struct RunConfig {
  ModelConfig model;
  DataConfig data;
  WeightsConfig weights;
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
  bool timeline = false;         // write timeline.json
  bool tensorboard = false;      // write event files for TensorBoard
  int64_t statistics_every = 0;  // steps between two lines of gradients.jsonl; 0: none
  bool record = false;           // record the order of events, for `dtrain simulate --replay`
  std::string collective;
  bool overlap_buckets = false;  // several all-reduces in flight at once
  bool window = true;            // ranks of a node read each other's vectors in shared memory
  int64_t workers = 1;
  bool workers_given = false;   // given by the file or an override, not the default
  CompressCost compress_cost;   // of the compressor, if cluster.compress_costs names a file
  std::string costs_device;     // its device ("cpu", "cuda"); "" without a file
  std::string costs_where;      // "file:line:column" of the key, for errors
  ClusterConfig cluster;        // the machines that are simulated, or paced
  std::vector<int> node_of;     // node of each worker, if PlaceOnHosts or a record gave it
  std::vector<int> rank_hosts;  // host of each rank, if PlaceOnHosts gave it
  std::string device;           // "auto", "cpu", "cuda"
  std::string precision;        // "fp32", "tf32", "bf16", "fp16"
  int64_t threads = 0;          // threads of a rank; 0: by rule
  uint64_t seed = 1;
  EvaluateConfig evaluate;
  StopConfig stop;
  CheckpointConfig checkpoint;
  int64_t log_first_steps = 0;  // each of the first N steps is logged
  int64_t log_every_steps = 0;  // afterwards every N-th step
  double stall_seconds = 0;     // 0: derived from the measured step time
  std::string plan;             // "auto", "measure" or a plan file
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

  bool plan_is_file() const { return plan != "auto" && plan != "measure"; }
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
// The config of such a simulation where the user gives none.
inline constexpr char kGhostYaml[] = "{max_steps: 1000}";

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
