// summary.json: the result of a run.  Other programs rely on its keys.
//
// workers_detail[].steps is the worker's share of `steps`; the number of steps that the worker counts itself is
// `own_steps`.
//
// Keys that make no sense for a run are left out: an empty optional, string or vector becomes an absent key.  Times are
// in seconds, sizes in bytes.
//
// Three sources: summary.cc fills a summary, by the reports of all ranks among others; summary_json.cc writes the file;
// summary_text.cc has the lines of the terminal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/comm/transport.h"
#include "framework/core/execution_plan.h"
#include "framework/core/time.h"
#include "framework/exchange/exchange.h"
#include "framework/nn/graph.h"
#include "framework/results/trained_epoch.h"
#include "framework/setup/data_summary.h"
#include "framework/setup/run_config.h"
#include "framework/strategies/counts.h"

namespace dtrain {

// Returns Summary::status of a run with this exit code.
inline std::string_view StatusOf(ExitCode code) {
  if (code == ExitCode::kDone) return "completed";
  return code == ExitCode::kStopped ? "stopped" : "failed";
}

struct TestResult {
  double loss = 0;
  std::optional<double> accuracy;  // 0..1
  std::optional<double> perplexity;
  std::optional<double> bleu;                          // 0..100
  std::vector<std::pair<std::string, double>> others;  // the model's further metrics: "top5"
  std::optional<int64_t> step = {};   // step of the evaluated weights if they are not the last
  std::optional<int64_t> epoch = {};  // epoch of the evaluated weights, if the best were kept
  std::optional<double> guess_accuracy = {};  // of the same answer for every sample
  std::optional<double> guess_loss = {};      // the same of a regression
  bool guessing = false;                      // the accuracy, or the loss, is no better than that
};

// Criterion is the quantity by which results are compared: accuracy for classes, perplexity for sentences, otherwise
// the loss.
enum class Criterion { kAccuracy, kPerplexity, kLoss };

struct BestResult {
  int64_t epoch = 0;
  std::optional<int64_t> step;
  std::optional<double> loss;  // set if the criterion is the loss
  std::optional<double> accuracy;
  std::optional<double> bleu;
  std::optional<double> perplexity;  // of the validation split
  std::vector<std::pair<std::string, double>> others;

  Criterion measure() const {
    if (accuracy) return Criterion::kAccuracy;
    return perplexity ? Criterion::kPerplexity : Criterion::kLoss;
  }
  double value() const { return accuracy.value_or(perplexity.value_or(loss.value_or(0))); }
};

// Holds the time until the run reached `stop.target`.  The optional members are absent if it was not reached.
struct TargetResult {
  double value = 0;
  bool reached = false;
  // Holds the training time without evaluations and checkpoints, over resumes.
  std::optional<double> seconds;
  std::optional<double> epochs;
  std::optional<double> steps;  // samples applied / batch
};

struct StepSeconds {
  double p50 = 0, p90 = 0, max = 0;
};

// Returns the statistics of durations of steps, which may be in any order; all are zero if there are none.
StepSeconds StepSecondsOf(std::vector<double> seconds);

// Holds sums over all ranks, servers included.  They count the messages of the protocol and of quiescence detection,
// with headers, and the traffic of the collectives within a step.  A message and its vector count as one.  The
// collective operations at a boundary are left out: set-up, evaluation, checkpoints and the gathering of these numbers.
struct CommunicationSummary {
  int64_t bytes_sent = 0;
  int64_t bytes_received = 0;
  int64_t messages = 0;
  double exposed_seconds = 0;              // maximum over the workers
  std::optional<double> compress_seconds;  // maximum over the ranks
  std::optional<double> density;           // entries sent / entries of the compressed gradients
  // Counts the part of bytes_sent in vectors sent between ranks of one node.
  std::optional<int64_t> bytes_inside_nodes;
  // Counts the part of bytes_sent in vectors that the receiver read in shared memory, without a copy.
  std::optional<int64_t> bytes_lent;
  std::optional<double> bytes_per_gradient;  // bytes_sent / steps of all workers
};

struct WorkerSummary {
  int rank = 0;
  std::string node;
  std::optional<int> group;
  // Holds the samples that the worker was trained on / global batch: its share of the run's steps.
  double steps = 0;
  int64_t own_steps = 0;  // its mini-batches
  double compute_seconds = 0;
  double wait_seconds = 0;
  // Holds the mean staleness of its gradients, if the protocol counts staleness.
  std::optional<double> staleness_mean;
};

struct StalenessSummary {
  int64_t max = 0;
  double mean = 0;
  std::vector<int64_t> histogram;  // [s]: number of gradients of staleness s
  // Holds the maximum lead over the slowest worker, in steps; only for strategies that admit steps by clocks.
  std::optional<int64_t> clock_lead_max;
};

// Describes a worker that died in a simulated run.
struct DeathSummary {
  int worker = 0;
  int node = 0;
  double seconds = 0;
  int64_t own_steps = 0;  // steps it had finished
};

// Describes the protocol.  The keys of the counts are the names under which the strategy declares them
// (Strategy::counters); those that are 0 are left out.
struct ProtocolSummary {
  StrategyCounts counts;
  std::optional<double> up_transfers_per_gradient = {};  // set if any vector went up
  std::optional<double> replica_spread = {};             // ModelAtBoundary::spread, in real runs
  std::vector<int64_t> idle_servers = {};                // servers without workers

  int64_t Total(std::string_view name) const { return counts.Total(name); }
};

struct PlanSummary {
  int buckets = 0;
  std::optional<double> predicted_seconds;  // predicted time of a step
};

struct Summary {
  std::string status;  // "completed", "stopped", "failed"
  int exit_code = 0;
  std::string strategy;
  std::string compressor;
  std::string collective;
  std::string model;
  std::string dataset;
  std::optional<DataSummary> data;  // of the user's own data
  std::string device;
  std::string precision;
  std::optional<int64_t> skipped_steps;  // with `precision: fp16`: their gradients overflowed
  std::string compute;
  int workers = 0;
  std::optional<int> servers;
  int64_t global_batch = 0;
  double epochs = 0;  // epochs trained, including fractions
  double steps = 0;   // samples applied / global batch
  // Holds the number of the last step, as in metrics.jsonl and checkpoints.
  std::optional<int64_t> step;
  std::optional<int64_t> resumed_step;  // step after which the run was resumed
  uint64_t seed = 0;
  double seconds = 0;
  double samples_per_second = 0;  // not counting evaluations and checkpoints
  std::optional<StepSeconds> step_seconds;
  std::optional<double> train_loss;  // of the last logged step
  // Results of the training passes of the last epoch, complete or not.
  std::optional<double> train_mean_loss;
  std::optional<double> train_accuracy;
  std::optional<TestResult> test;
  std::optional<BestResult> best;
  std::optional<TargetResult> target;  // set if the config has a target
  std::optional<CommunicationSummary> communication;
  std::vector<WorkerSummary> workers_detail;
  std::vector<DeathSummary> deaths;
  std::optional<StalenessSummary> staleness;
  std::optional<ProtocolSummary> protocol;
  std::optional<PlanSummary> plan;
  std::string weights_sha256;
  std::string config_sha256;
};

// --- summary.cc fills a summary

void DescribeEnd(ExitCode code, Summary& summary);

// Fills the members that follow from the config alone, for real and simulated runs.
void DescribeConfig(const RunConfig& config, Summary& summary);

// Fills the training results of the last epoch, with the accuracy if the model measures one.
void DescribeTraining(const TrainedEpoch& epoch, const Graph& graph, Summary& summary);

// Fills the members that are known before the run begins.
void DescribeRun(const RunConfig& config, const Graph& graph, const ExecutionPlan& plan,
                 Summary& summary);

struct RankReport {
  int64_t steps = 0;    // steps of the rank's worker since the start or resume
  int64_t samples = 0;  // samples of these steps
  Nanos compute = 0;    // forward and backward
  ExchangeStats exchange;
  DTRAIN_FIELDS(steps, samples, compute, exchange.traffic, exchange.exposed, exchange.protocol,
                exchange.worker, exchange.compression.entries_sent, exchange.compression.entries,
                exchange.compression.time)
};

WorkerSummary WorkerSummaryOf(int rank, const std::string& node, const RankReport& report,
                              int64_t batch);
// Fills `staleness` and `protocol` if the strategy has counted any.
void DescribeProtocol(const ProtocolReport& report, Summary& summary);
// Returns the number of gradients of all workers, from `workers_detail`.
int64_t GradientsOf(const Summary& summary);
void DescribeBytesPerGradient(Summary& summary);
// Sets compress_seconds and density; does nothing if no gradient was compressed.
void DescribeCompression(const CompressionReport& report, double seconds,
                         CommunicationSummary& communication);

// All ranks call it at a boundary.  On rank 0 it fills `workers_detail` for ranks 0..workers-1, `communication` if
// there are several ranks or gradients were compressed, and `staleness` and `protocol` if the strategy counts any.
// `batch` is the global batch size.
void GatherReports(Transport& transport, const RankReport& mine, int workers, int64_t batch,
                   Summary& summary);

// --- summary_json.cc writes it

// Returns indented JSON that ends with a newline; NaN and infinity become null.
std::string ToJson(const Summary& summary);

// --- summary_text.cc tells parts of it on the terminal

// Returns ", of the weights of epoch 7 (step 70)" for the weights of a kept best evaluation, and ", of the weights of step
// 70" for others that are not the last; "" if neither number is known.
std::string WeightsText(std::optional<int64_t> epoch, std::optional<int64_t> step);

// Returns "test accuracy 99.05 %, loss 0.0312" or "test perplexity 25.31, loss 3.2312, BLEU 28.30", with the name of
// another `split` in place of "test".
std::string TestText(const TestResult& test, const std::string& split = "test");

// Returns "2 workers and 1 server".
std::string WorkersText(const Summary& summary);
// Returns "allreduce, collective ordered" or "ps_ssp, compressed by topk".
std::string StrategyText(const Summary& summary);

// Returns "reached the target accuracy of 98.00 % after 12.3 s (3.20 epochs, 3001 steps)", or that the target was not
// reached and the best value.  Returns "" without a target.
std::string TargetText(const Summary& summary);

// Returns "worker 2 of node 1 died at 1.250 s, after 20 steps", one line for each death, and the number of lost
// gradients; "" if there was no death.
std::string DeathsText(const Summary& summary);

// Logs which servers had no workers at the end, if there are any.
void NameIdleServers(const Summary& summary);

}  // namespace dtrain
