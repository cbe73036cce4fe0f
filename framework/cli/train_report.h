// What `dtrain train` prints at the end.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "framework/runtime/results/summary.h"

namespace dtrain {

// The result in a few lines, or summary.json's content with `json`.
void PrintTrainResult(std::ostream& out, const Summary& summary, const std::string& output,
                      bool json);

// The same for a run that was completed before: its summary.json, or where that lies.
void PrintFinishedRun(std::ostream& out, const std::string& output, bool json);

// Mean and deviation of the test results in the summaries of these run folders.
void PrintSeedTable(std::ostream& out, const std::vector<std::string>& outputs, bool json);

}  // namespace dtrain
