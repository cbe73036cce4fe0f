// `dtrain bench topk` measures the time of compressors: selections, compared with a plain read of the same values, casts
// and coders.  It writes the measured times to a file from which they are simulated (core/compress_cost.h).
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "framework/core/compress_cost.h"
#include "framework/device/device.h"

namespace dtrain {

struct BenchTopkOptions {
  // Each may have keys, as in gaussiank:loop=published.
  std::vector<std::string> compressors = {"topk", "gaussiank", "gaussiank:loop=published",
                                          "dgc",  "trimmed",   "randk"};
  std::vector<int64_t> sizes = {1'000'000, 10'000'000, 100'000'000};  // values
  std::vector<double> densities = {0.001};                            // of selections
  std::vector<int> workers = {2, 16};                                 // whose words a coder decodes
  std::string distribution = "normal";                                // or "laplace"
  double seconds = 1;                                                 // measuring time of each case

  // Returns those for a file of costs that is for any run: all compressors, and sizes from a bias to a large bucket.
  static BenchTopkOptions ForCosts();
};

// Prints one JSON line for each compressor, size and density or number of workers: the shortest time of one selection
// and of one read, which alternate.  They run in the calling thread, whose computing time counts, or on a device with its
// own memory, which then holds the values.  The selection is like one in the course of a training run: it starts from
// the threshold of a previous selection, from other values of the distribution.  Casts and coders run in the calling
// thread, as they do in a run on any device; a coder gets one matrix, about as wide as high.
//
// `costs` receives the times, by CompressConfig::cost_name; null: they are not needed.
int BenchTopk(const BenchTopkOptions& options, const Device& device, std::ostream& out,
              std::vector<CompressCost>* costs = nullptr);

}  // namespace dtrain
