// What a rank alone has, in checkpoints of asynchronous and of simulated runs
// (runtime/weights/rank_checkpoint.h): which run it belongs to, and what a resumed run does with it.
//
//   same strategy, compressor and placement  each rank goes on with what it had
//   other ones                               residuals are summed, times the ratio of the rates that
//                                            they are due at and are sent at; the rest begins anew,
//                                            with a warning.  Refused while an actor holds gradients
//                                            for others, or residuals would have no place
//   no rank files                            every rank begins anew, with a warning
//
// Keys that change no state (Strategy::MayChange), the batch of a synchronous run, and keys that one of the two programs
// does not know, make no other run.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "framework/core/state_record.h"
#include "framework/data/dataset.h"
#include "framework/exchange/exchange.h"
#include "framework/nn/graph.h"
#include "framework/runtime/setup/run_config.h"
#include "framework/runtime/weights/checkpoint.h"
#include "framework/runtime/weights/rank_checkpoint.h"

namespace dtrain {

// Where there are rank files, they belong to one of these.
enum class RunTime { kReal, kVirtual };

// Whether ranks have something that the others have not: each takes its own steps, or keeps back what
// a compressor does not send.
bool KeepsRankState(const RunConfig& config);

// A rank file's actors and placement; the rest is empty.
RankCheckpoint WorldOf(const RunConfig& config, const Graph& graph, const Dataset& dataset,
                       RunTime time);

// A worker's own, beside its actors.
struct WorkerState {
  int64_t steps = 0;              // mini-batches that it has trained on: the number of its next one
  std::vector<float> statistics;  // of its batch norm
  void Visit(StateVisitor& visitor);
};

// What the ranks of a run begin with.
struct RankStart {
  std::string main;                 // the checkpoint whose rank files are taken; "": none are
  std::vector<std::string> hashes;  // of them, by rank
  KeptVectors kept;                 // for worker 0, which is on rank 0; not told to the others
  bool exact() const { return !main.empty(); }
  DTRAIN_FIELDS(main, hashes)
};

// Decides what becomes of a checkpoint's rank files in the run that is `here`, of `config`, and says
// what is not taken over.  Throws CheckpointError where gradients would be lost.  `expected`: this run
// writes rank files itself.
RankStart StartOfRanks(const Checkpoint& checkpoint, const RunConfig& config,
                       const RankCheckpoint& here, bool expected);

// At a boundary, beside the main file: each rank its own, durably, with what its exchange and its worker have.  All ranks call
// it; the hashes of all, on rank 0.  What goes wrong on one is thrown on all.
std::vector<std::string> WriteRankFiles(Exchange& exchange, const std::filesystem::path& main,
                                        RankCheckpoint file, std::optional<WorkerState> worker);

}  // namespace dtrain
