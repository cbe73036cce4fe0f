// A Coder is a compressor that sends neither entries nor casts: it encodes a range of the gradient into words of 32 bits,
// has them summed or gathered over all workers, as often as it needs, and decodes the sum of the gradients from them.
//
// The residual keeps what the decoded sum lacks, as with any compressor (error feedback): over all workers, sum +
// residuals = accumulated, but for rounding.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "framework/compress/compressor.h"
#include "framework/core/check.h"
#include "framework/core/layout.h"
#include "framework/core/state_visitor.h"

namespace dtrain {

// Encodes and decodes one range of a worker's gradient, step after step:
//
//   for each round:  for each parameter: Encode(round, parameter, values, words);
//                    the words are summed or gathered over all workers
//                    Decode(round, parts);
//   for each parameter: Finish(parameter, values, sum);
//
// `values` are those of the parameter in the residual, with the gradient added: the worker's part of a mean gradient, so
// that all workers' values have to be added.  They are the same in all rounds.  A ghost run asks for rounds() alone.
class Coding {
 public:
  struct Round {
    int64_t words = 0;      // that a worker sends; the same on all workers and in all steps
    bool gathered = false;  // true: every worker gets those of all; false: their sums, as floats
  };

  virtual ~Coding() = default;
  virtual const std::vector<Round>& rounds() const = 0;
  // Writes the parameter's part of the words of this round.
  virtual void Encode(int round, size_t parameter, const float* values, float* words) = 0;
  // Takes the result of a round.  gathered: the words of each worker, by rank; else `parts` is the sum alone.  The memory
  // of the parts stays as it is until the next round.
  virtual void Decode(int round, std::span<const std::span<const float>> parts) = 0;
  // Writes the sum over all workers, with the same bits on each, and leaves in `values` what this worker has not sent.
  virtual void Finish(size_t parameter, float* values, float* sum) = 0;
  // Visits the state that is kept from step to step.
  virtual void Visit(StateVisitor&) {}
};

class Coder : public Compressor {
 public:
  // `parameters` are those of the range, in the order of the arena.  Random numbers follow from the seed and a
  // parameter's place in the arena alone, so all workers draw the same.
  virtual std::unique_ptr<Coding> MakeCoding(std::vector<ArenaEntry> parameters, int workers,
                                             uint64_t seed) const = 0;

  const Coder* coder() const final { return this; }
  std::unique_ptr<Selection> Select(int64_t, double, const SelectionKey&) const final {
    DT_CHECK(false) << "a coder selects nothing";
    return nullptr;
  }
  int64_t Asked(int64_t n, double) const final { return n; }
  int64_t EntriesMost(int64_t n, double) const final { return n; }
  int passes() const final { return 0; }  // the exchange counts those of a Coding
};

}  // namespace dtrain
