// summary.json: how a run ended and what came out.  Other programs rely on its keys.
//
// Schema 2: workers_detail[].steps are a part of `steps`, and what a worker counts itself is
// `own_steps`, which schema 1 had under the name `steps`.
//
// What makes no sense for a run is left out: an empty optional, string or vector is an absent key.
// Seconds and bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/comm/transport.h"
#include "framework/core/execution_plan.h"
#include "framework/core/time.h"
#include "framework/exchange/exchange.h"
#include "framework/nn/graph.h"
#include "framework/runtime/results/trained_epoch.h"
#include "framework/runtime/setup/run_config.h"

namespace dtrain {

// Summary::status of a run that ended so.
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
  std::optional<int64_t> step = {};  // whose weights it is of, where they are not the last
};

// What a run is judged by: the accuracy of classes, the perplexity of sentences, else the loss.
enum class Criterion { kAccuracy, kPerplexity, kLoss };

struct BestResult {
  int64_t epoch = 0;
  std::optional<int64_t> step;
  std::optional<double> loss;  // where it is what the run is judged by
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

// How long it took to be as good as `stop.target` asks; what follows `reached` is absent where it
// was not.
struct TargetResult {
  double value = 0;
  bool reached = false;
  std::optional<double> seconds;  // without evaluations and checkpoints; over resumes
  std::optional<double> epochs;
  std::optional<double> steps;  // samples applied / batch
};

struct StepSeconds {
  double p50 = 0, p90 = 0, max = 0;
};

// Of one step's durations; they need not be sorted.  All zero for none.
StepSeconds StepSecondsOf(std::vector<double> seconds);

// Sums over all ranks, servers included: the messages of the protocol, of boundaries and of sums within a
// step, headers counted, and what the collective moved.  A message counts once, with its vector.
// Left out is what ranks exchange at a boundary: set-up, evaluation, checkpoints, these numbers.
struct CommunicationSummary {
  int64_t bytes_sent = 0;
  int64_t bytes_received = 0;
  int64_t messages = 0;
  double exposed_seconds = 0;                 // longest of any worker
  std::optional<double> compress_seconds;     // longest of any rank
  std::optional<double> density;              // sent / all entries of what was compressed
  std::optional<int64_t> bytes_inside_nodes;  // of those sent: vectors between ranks of one node
  std::optional<int64_t> bytes_lent;          // of those: read by the other rank where they lie
  std::optional<double> bytes_per_gradient;   // sent in all, by the workers' steps
};

struct WorkerSummary {
  int rank = 0;
  std::string node;
  std::optional<int> group;
  double steps = 0;       // samples that it was trained on / global batch: its part of the run's
  int64_t own_steps = 0;  // mini-batches
  double compute_seconds = 0;
  double wait_seconds = 0;
  std::optional<double> staleness_mean;  // of its gradients, where the protocol counts any
};

struct StalenessSummary {
  int64_t max = 0;
  double mean = 0;
  std::vector<int64_t> histogram;         // [s]: gradients of staleness s
  std::optional<int64_t> clock_lead_max;  // where workers are admitted by clocks
};

// A worker that died in a simulated run.
struct DeathSummary {
  int worker = 0;
  int node = 0;
  double seconds = 0;
  int64_t own_steps = 0;  // that it had ended
};

// What strategies count besides; what none has counted is left out.
struct ProtocolSummary {
  // Vectors of the model's size, whole or what a compressor picked of them: gradients, their sums
  // and flushed residuals up, weights down.
  int64_t up_transfers = 0, down_transfers = 0;
  double up_transfers_per_gradient = 0;
  int64_t rounds = 0;
  int64_t dropped = 0, merged = 0;            // gradients (ProtocolReport)
  int64_t lost = 0;                           // gradients, with those who died
  int64_t ignored = 0;                        // messages of nodes that had been given up
  int64_t slot_waits = 0;                     // steps (ProtocolReport)
  int64_t exchanges = 0;                      // between groups
  std::optional<double> replica_spread = {};  // ModelAtBoundary::spread, in real runs
  int64_t regroups = 0;
  std::vector<int64_t> idle_servers = {};  // of groups: those without workers
};

struct PlanSummary {
  int buckets = 0;
  std::optional<double> predicted_seconds;  // of a step
  // The first time that steps of a run took other times than its plan was made for: to compute, and for
  // the sums one after the other.
  struct Drift {
    int64_t step = 0;  // behind which it was seen
    double compute_planned = 0, compute_seen = 0;
    double sums_planned = 0, sums_seen = 0;
  };
  std::optional<Drift> drift = {};
  int64_t replans = 0;  // since the start or resume
};

struct Summary {
  std::string status;  // "completed", "stopped", "failed"
  int exit_code = 0;
  std::string strategy;
  std::string compressor;
  std::string collective;
  std::string model;
  std::string dataset;
  std::string device;
  std::string precision;
  std::string compute;
  int workers = 0;
  std::optional<int> servers;
  int64_t global_batch = 0;
  double epochs = 0;                    // trained, fractions included
  double steps = 0;                     // samples applied / batch
  std::optional<int64_t> step;          // the last one, as metrics.jsonl and checkpoints count them
  std::optional<int64_t> resumed_step;  // behind which it was resumed
  uint64_t seed = 0;
  double seconds = 0;
  double samples_per_second = 0;  // without evaluation and checkpoint pauses
  std::optional<StepSeconds> step_seconds;
  std::optional<double> train_loss;  // of the last logged step
  // Of the last epoch that was trained, whole or in part.
  std::optional<double> train_mean_loss;
  std::optional<double> train_accuracy;
  std::optional<TestResult> test;
  std::optional<BestResult> best;
  std::optional<TargetResult> target;  // where the config names one
  std::optional<CommunicationSummary> communication;
  std::vector<WorkerSummary> workers_detail;
  std::vector<DeathSummary> deaths;
  std::optional<StalenessSummary> staleness;
  std::optional<ProtocolSummary> protocol;
  std::optional<PlanSummary> plan;
  std::string weights_sha256;
  std::string config_sha256;
};

// "test accuracy 99.05 %, loss 0.0312", "test perplexity 25.31, loss 3.2312, BLEU 28.30"; of another `split` the same.
std::string TestText(const TestResult& test, const std::string& split = "test");

// "2 workers and 1 server"
std::string WorkersText(const Summary& summary);
// "allreduce, collective ordered", "ps_ssp, compressed by topk"
std::string StrategyText(const Summary& summary);

// "reached the target accuracy of 98.00 % after 12.3 s (3.20 epochs, 3001 steps)", or that it was
// not reached and what the best was.  Empty without a target.
std::string TargetText(const Summary& summary);

// "worker 2 of node 1 died at 1.250 s, after 20 steps", a line each, and how many gradients were lost;
// empty where nobody died.
std::string DeathsText(const Summary& summary);

// Indented JSON that ends with a newline; NaN and infinity are null.
std::string ToJson(const Summary& summary);

void DescribeEnd(ExitCode code, Summary& summary);

// What the summary says of any run, real or simulated, by its config alone.
void DescribeConfig(const RunConfig& config, Summary& summary);

// What training passes found of the last epoch; the accuracy where the model measures one.
void DescribeTraining(const TrainedEpoch& epoch, const Graph& graph, Summary& summary);

// What the summary says of a run before it has run.
void DescribeRun(const RunConfig& config, const Graph& graph, const ExecutionPlan& plan,
                 Summary& summary);

struct RankReport {
  int64_t steps = 0;    // of its worker, since the start or resume
  int64_t samples = 0;  // of these
  Nanos compute = 0;    // forward and backward
  ExchangeStats exchange;
  DTRAIN_FIELDS(steps, samples, compute, exchange.traffic, exchange.exposed, exchange.protocol,
                exchange.worker, exchange.compression.entries_sent, exchange.compression.entries,
                exchange.compression.time)
};

WorkerSummary WorkerSummaryOf(int rank, const std::string& node, const RankReport& report,
                              int64_t batch);
// Fills `staleness` and `protocol`, where the strategy has counted any.
void DescribeProtocol(const ProtocolReport& report, Summary& summary);
// Says which servers of groups have had nobody to serve at the end, where there are any.
void NameIdleServers(const Summary& summary);
// Of all workers, by `workers_detail`.
int64_t GradientsOf(const Summary& summary);
void DescribeBytesPerGradient(Summary& summary);
// Nothing where nothing was compressed.
void DescribeCompression(const CompressionReport& report, double seconds,
                         CommunicationSummary& communication);

// All ranks call it at a boundary.  On rank 0 it fills `workers_detail` (of ranks 0..workers-1), with
// several ranks `communication`, and `staleness` where a protocol has counted any.  `batch`: global.
void GatherReports(Transport& transport, const RankReport& mine, int workers, int64_t batch,
                   Summary& summary);

}  // namespace dtrain
