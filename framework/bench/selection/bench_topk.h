// `dtrain bench topk`: what selections of compressors take, beside a plain read of the same values.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "framework/device/device.h"

namespace dtrain {

struct BenchTopkOptions {
  // Each with keys, as in gaussiank:loop=published
  std::vector<std::string> compressors = {"topk", "gaussiank", "gaussiank:loop=published",
                                          "dgc",  "trimmed",   "randk"};
  std::vector<int64_t> sizes = {1'000'000, 10'000'000, 100'000'000};  // values
  double density = 0.001;
  std::string distribution = "normal";  // or "laplace"
  double seconds = 1;                   // that each case is measured for
};

// One JSON line for each compressor and size: the least of the times that one selection took, in the
// thread that calls or on a device with memory of its own, from values there, and a read likewise, by turns.  The selection is one of a training run in
// its course: it begins from what the one before, of other values of the distribution, handed on.
int BenchTopk(const BenchTopkOptions& options, const Device& device, std::ostream& out);

}  // namespace dtrain
