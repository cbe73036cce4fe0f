// Rank files of a checkpoint, step-00001832.rank-K.h5: the state that only one rank has, in asynchronous and simulated
// runs.  The model, the solver and the position are in the main file.
//
//   /rank                 attributes: format, rank, step, samples_applied, role ("worker 0, server 0"),
//                         holds (Actor::Holds); data sets: actors and placement, which identify the run,
//                         as text, one fact a line; fields, the list below
//   /fields/<N>           the N-th field: floats (vectors of the actors), or bytes (64-bit numbers)
//
// A field has an owner and a name.  It belongs either to the exchange (vectors, clocks, groups, partial sums,
// residuals, the solver state of master weights, timers) or to its host (a worker's next mini-batch and its batch-norm
// statistics; in a simulation the virtual time and the state of the network).
//
// A rank file has a seal like a main file (checkpoint_seal.h) and is written durably before it.  The main file contains
// the hash of each rank file, so that a missing one, or one that another run wrote for the same step, is detected.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "framework/checkpoint/checkpoint.h"
#include "framework/core/state_record.h"

namespace dtrain {

struct RankCheckpoint {
  int64_t rank = 0;
  int64_t step = 0;
  int64_t samples_applied = 0;
  std::string role;
  std::string holds;
  // These identify the run, one fact a line.  State can be loaded if both are equal.  If only the placement differs,
  // residuals can still be summed.
  std::string actors;     // strategy, compressor, solver, model
  std::string placement;  // number of workers and servers, and their ranks
  StateRecord exchange;
  StateRecord host;
};

// Returns the path of a rank file: "step-00001832.rank-2.h5" in the folder of the main file.
std::filesystem::path RankFileOf(const std::filesystem::path& main, int64_t rank);

// Writes a rank file durably, as WriteCheckpoint does.  Returns the hash that the main file must contain.
std::string WriteRankCheckpoint(const std::filesystem::path& main, const RankCheckpoint& content);

// Reads the rank file of a main file that has this hash for it.  Throws CheckpointError with the path if the file does
// not exist, is damaged, or belongs to another main file or rank.
RankCheckpoint ReadRankCheckpoint(const std::filesystem::path& main, int64_t rank,
                                  const std::string& hash);

// Verifies every byte of all rank files of a main file, one file at a time.  Throws as ReadRankCheckpoint does.
void CheckRankFiles(const std::filesystem::path& main, const CheckpointInfo& info);

}  // namespace dtrain
