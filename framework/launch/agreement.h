// The start-up agreement: before the first collective, all ranks compare everything that decides the bits of a run:
// source revision, effective config, graph, plan and data.
#pragma once

#include <string>
#include <vector>

#include "framework/comm/transport.h"
#include "framework/core/bytes.h"

namespace dtrain {

struct Fact {
  std::string name;   // "config"
  std::string value;  // any text; compared line by line for the message
  DTRAIN_FIELDS(name, value)
};

// Collective.  Throws SharedError (exit code 2) on every rank if some rank's facts differ from rank 0's; `what` names
// the rank, the fact and the first lines that differ.
void CheckAgreement(Transport& transport, const std::vector<Fact>& facts);

// Returns the lines of `theirs` that differ from `ours`, at most `most` of them: "  - ours\n  + theirs\n".
std::string LineDiff(const std::string& ours, const std::string& theirs, int most = 5);

}  // namespace dtrain
