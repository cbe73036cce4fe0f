// Rank files of a checkpoint, step-00001832.rank-K.h5: what a rank alone has, where it has anything -
// in asynchronous runs, and in simulated ones.  The model, the solver and the position stand in the
// main file.
//
//   /rank                 attributes: format, rank, step, samples_applied, role ("worker 0, server 0"),
//                         holds (Actor::Holds); data sets actors and placement: the run that it
//                         belongs to, as text, a fact a line; fields: the list below
//   /fields/<N>           the N-th field: floats (vectors of the actors), or bytes (64-bit numbers)
//
// Fields are those of the exchange (vectors, clocks, groups, partial sums, residuals, the solver's
// state of its masters, timers) and of its host (a worker's next mini-batch and its batch-norm
// statistics; in a simulation the virtual time and the network's), each with its owner and name.
//
// A rank file has the seal of a main file (checkpoint_seal.h) and is written durably before it.  The
// main file names the hash of each, so that neither a lost one nor one of another run of the same
// step is taken for part of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "framework/core/state_record.h"
#include "framework/runtime/weights/checkpoint.h"

namespace dtrain {

struct RankCheckpoint {
  int64_t rank = 0;
  int64_t step = 0;
  int64_t samples_applied = 0;
  std::string role;
  std::string holds;
  // Of which run, a fact a line.  State can be loaded where both are the same.  Where only the
  // placement is another one, residuals can be summed.
  std::string actors;     // strategy, compressor, solver, model
  std::string placement;  // how many workers and servers there are, and where
  StateRecord exchange;
  StateRecord host;
};

// "step-00001832.rank-2.h5" beside that main file.
std::filesystem::path RankFileOf(const std::filesystem::path& main, int64_t rank);

// Writes it durably, as WriteCheckpoint does; returns the hash that the main file is to name.
std::string WriteRankCheckpoint(const std::filesystem::path& main, const RankCheckpoint& content);

// The rank file of a main file that names it with this hash.  Throws CheckpointError with the path
// where it is not there, is damaged, or belongs to another main file or rank.
RankCheckpoint ReadRankCheckpoint(const std::filesystem::path& main, int64_t rank,
                                  const std::string& hash);

// Checks every byte of all rank files that a main file names, one after the other; throws as
// ReadRankCheckpoint does.
void CheckRankFiles(const std::filesystem::path& main, const CheckpointInfo& info);

}  // namespace dtrain
