// `dtrain train --dry-run`: what a run would do (runtime/run/dry_run.h), the time of its first steps, and
// both in words.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "framework/runtime/run/dry_run.h"

namespace dtrain {

struct FirstSteps {
  int64_t measured = 0;  // 0: none, for there is nothing left to do
  double seconds = 0;    // of one, the median
};

// Takes a few steps of worker 0, for some seconds, or one step if that takes longer.  They leave nothing
// behind, but use up `run.inputs`.  Throws DivergedError where they bring a NaN or infinity.
FirstSteps TimeFirstSteps(DryRun& run);

// What is said beside the facts.
struct DryRunWords {
  std::string check;  // the command that prints the config
  std::string hosts;  // of --hosts; "": this machine's
  int64_t runs = 1;   // of which this is the first (--seeds)
};

void PrintDryRun(std::ostream& out, const DryRun& run, const FirstSteps& steps,
                 const DryRunWords& words);
void PrintDryRunJson(std::ostream& out, const DryRun& run, const FirstSteps& steps,
                     const DryRunWords& words);

}  // namespace dtrain
