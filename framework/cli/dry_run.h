// `dtrain train --dry-run`: prints what a run would do (train/dry_run.h) and the measured time of its first steps.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "framework/train/dry_run.h"

namespace dtrain {

struct FirstSteps {
  int64_t measured = 0;  // number of steps timed; 0: there is nothing left to train
  double seconds = 0;    // median time of one step
};

// Runs worker 0 for a few steps, up to some seconds, or for one step if that takes longer.  The steps change nothing
// outside, but use up `run.inputs`.  Throws DivergedError if they produce a NaN or infinity.
FirstSteps TimeFirstSteps(DryRun& run);

// Texts that PrintDryRun prints in addition to the information in DryRun.
struct DryRunWords {
  std::string check;  // the command that prints the config
  std::string hosts;  // the value of --hosts; "": only this machine
  int64_t runs = 1;   // number of runs (--seeds); the dry run is of the first one
};

void PrintDryRun(std::ostream& out, const DryRun& run, const FirstSteps& steps,
                 const DryRunWords& words);
void PrintDryRunJson(std::ostream& out, const DryRun& run, const FirstSteps& steps,
                     const DryRunWords& words);

}  // namespace dtrain
