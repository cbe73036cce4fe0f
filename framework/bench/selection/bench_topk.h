// `dtrain bench topk` measures the time of compressors' selections, and compares it with a plain read of the same
// values.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "framework/device/device.h"

namespace dtrain {

struct BenchTopkOptions {
  // Each may have keys, as in gaussiank:loop=published.
  std::vector<std::string> compressors = {"topk", "gaussiank", "gaussiank:loop=published",
                                          "dgc",  "trimmed",   "randk"};
  std::vector<int64_t> sizes = {1'000'000, 10'000'000, 100'000'000};  // values
  double density = 0.001;
  std::string distribution = "normal";  // or "laplace"
  double seconds = 1;                   // measuring time of each case
};

// Prints one JSON line for each compressor and size: the shortest time of one selection and of one read, which
// alternate.  They run in the calling thread, or on a device with its own memory, which then holds the values.  The
// selection is like one in the course of a training run: it starts from the threshold of a previous selection, from
// other values of the distribution.
int BenchTopk(const BenchTopkOptions& options, const Device& device, std::ostream& out);

}  // namespace dtrain
