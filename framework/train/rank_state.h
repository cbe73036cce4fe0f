// Rank files: the state that a rank does not share with the others, in checkpoints of asynchronous and of simulated
// runs (checkpoint/rank_checkpoint.h).  Decides whether they belong to a resumed run, and how it uses them.
//
//   same strategy, compressor and placement  each rank goes on with its own state
//   other ones                               the residuals are added up and scaled by the ratio of the rates
//                                            of the old and the new strategy (Strategy::RateOfGradient); all
//                                            other state begins anew, with a warning.  Refused if an actor
//                                            holds gradients of other ranks, or if residuals have no place
//   no rank files                            every rank begins anew, with a warning
//
// Three kinds of keys are not compared: keys that change no state (Strategy::MayChange), the batch of a synchronous
// run, and keys that only one of the two program versions knows.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "framework/checkpoint/checkpoint.h"
#include "framework/checkpoint/rank_checkpoint.h"
#include "framework/core/state_record.h"
#include "framework/data/dataset.h"
#include "framework/exchange/exchange.h"
#include "framework/nn/graph.h"
#include "framework/setup/run_config.h"

namespace dtrain {

// The clock of a run: rank files of a real run and of a simulated one are not interchangeable.
enum class RunTime { kReal, kVirtual };

// True if ranks have state of their own: each worker counts its own steps or has its own weights, or a compressor keeps
// residuals.
bool KeepsRankState(const RunConfig& config);

// Returns a rank file with the actors and the placement of this run; its other fields are empty.
RankCheckpoint WorldOf(const RunConfig& config, const Graph& graph, const Dataset& dataset,
                       RunTime time);

// Holds the state of a worker, apart from its actors.
struct WorkerState {
  int64_t steps = 0;              // mini-batches trained on; also the number of the next one
  std::vector<float> statistics;  // batch-norm statistics
  void Visit(StateVisitor& visitor);
};

// Describes the rank state with which a run begins.
struct RankStart {
  std::string main;                 // the checkpoint whose rank files are loaded; "": none
  std::vector<std::string> hashes;  // hashes of these files, by rank
  KeptVectors kept;                 // for worker 0, which is on rank 0; not sent to the other ranks
  bool exact() const { return !main.empty(); }
  DTRAIN_FIELDS(main, hashes)
};

// Decides how a resumed run uses a checkpoint's rank files, and prints what it cannot use.  `config` and `present`
// describe the resumed run.  `expected`: this run writes rank files itself, so their absence is worth a warning.
// Throws CheckpointError if gradients would be lost.
RankStart StartOfRanks(const Checkpoint& checkpoint, const RunConfig& config,
                       const RankCheckpoint& present, bool expected);

// Collective, at a boundary: each rank writes its rank file beside the main file `main`, durably, with the state of its
// exchange and its worker.  Returns the hashes of all rank files on rank 0.  An error on one rank is thrown on all.
std::vector<std::string> WriteRankFiles(Exchange& exchange, const std::filesystem::path& main,
                                        RankCheckpoint file, std::optional<WorkerState> worker);

}  // namespace dtrain
