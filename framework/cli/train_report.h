// The output of `dtrain train` at the end of a run.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "framework/results/summary.h"

namespace dtrain {

// Prints the result in a few lines, or summary.json's content if `json`.
void PrintTrainResult(std::ostream& out, const Summary& summary, const std::string& output,
                      bool json);

// Prints the same for a run that had already completed, from its summary.json, or names the file.
void PrintFinishedRun(std::ostream& out, const std::string& output, bool json);

// Prints mean and deviation of the test results in the summaries of these run folders.
void PrintSeedTable(std::ostream& out, const std::vector<std::string>& outputs, bool json);

}  // namespace dtrain
