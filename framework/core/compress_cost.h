// CompressCost: the measured seconds that a compressor takes for a vector at one rank.
//
// `dtrain bench topk --costs FILE` measures them, `cluster.compress_costs: FILE` names the file, and the simulator and
// the planner charge them.  Without a cost they charge passes over memory (Compressor::passes).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/time.h"

namespace dtrain {

struct CompressCost {
  // One measurement.  `density` is that of a selection, and 0 for other compressors.  `workers` is the number of
  // workers whose words a coder decodes, and 0 for other compressors.
  struct Sample {
    double density = 0;
    int workers = 0;
    int64_t entries = 0;  // of the vector
    // The selection, the rounding of a cast, or what a coder encodes in one step, in all its rounds together.
    double seconds = 0;
    double decode_seconds = 0;  // a coder's only
    friend bool operator==(const Sample&, const Sample&) = default;
  };

  // Names the compressor, with its keys that change the time and have not their default: "gaussiank:loop=published"
  // (CompressConfig::cost_name).
  std::string compressor;
  std::vector<Sample> samples;  // ascending by density, workers and entries
  std::string file, sha256;     // the file that it was read from; not in the file itself

  bool known() const { return !samples.empty(); }

  // Return the time for a vector, rounded to nanoseconds; 0 without entries.  The seconds are piecewise linear in the
  // number of entries.  Below the smallest measured size the line of the two smallest goes on, as long as it is not
  // negative at 0, where it has the fixed part; above the largest, that of the two largest.  With a single size they
  // are proportional.  Between measured densities or numbers of workers they are linear, too.  Beyond the measured
  // densities those of the nearest one count; beyond the measured numbers of workers the line goes on.
  Nanos SelectTime(int64_t entries, double density) const;  // also for a cast, whatever the density
  Nanos EncodeTime(int64_t entries, int workers) const;
  Nanos DecodeTime(int64_t entries, int workers) const;

  friend bool operator==(const CompressCost&, const CompressCost&) = default;

 private:
  double Seconds(double Sample::*of, int64_t entries, double density, int workers) const;
};

// Holds the content of a file of costs.
struct CompressCosts {
  std::string device;   // "cpu", "cuda": where selections have their values
  std::string machine;  // name of the CPU or GPU
  std::string isa;      // IsaName of the measuring process; "" if unknown
  int threads = 1;
  std::string source;               // how the numbers were obtained, in words
  std::vector<CompressCost> costs;  // of different compressors

  const CompressCost* Find(const std::string& compressor) const;  // null if there is none
  std::string Names() const;  // of the compressors, "topk, gaussiank"

  friend bool operator==(const CompressCosts&, const CompressCosts&) = default;
};

// Returns indented JSON that ends with a newline, with a line for each sample.
std::string ToJson(const CompressCosts& costs);

// Parses what ToJson returns.  `source` names the text in messages.  Throws ConfigError for text that is not JSON, lacks
// a key, or has an unknown key or a value of the wrong type, for samples out of order and for a compressor twice.
CompressCosts CompressCostsFromJson(std::string_view text, const std::string& source);

// Throws DataError if the file cannot be read, else as CompressCostsFromJson.  The costs have file and sha256.
CompressCosts ReadCompressCosts(const std::filesystem::path& path);

// The same for a single cost as part of a larger file (plan.json): an object with compressor, file, sha256 and samples.
std::string ToJson(const CompressCost& cost);
CompressCost CompressCostFromJson(std::string_view text, const std::string& source);

}  // namespace dtrain
