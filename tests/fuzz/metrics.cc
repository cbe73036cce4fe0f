// Reads metrics.jsonl as a resumed run and a report do, and checks what a resumed run keeps of it.
#include "framework/results/metrics.h"

#include "framework/core/file.h"
#include "tests/fuzz/fuzz_target.h"

namespace dtrain::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kResumedStep = 20;

// Lines without a known record are skipped, so no text is refused.  Returns true if a line holds an
// evaluation.
bool Metrics(std::string_view input) {
  const fs::path path = WriteScratch("metrics.jsonl", input);
  const std::vector<EvaluationMetrics> evaluations = ReadEvaluations(path, {"top5"});
  { const JsonLines kept(path, kResumedStep); }
  const std::string rest = ReadFile(path);
  Require(rest.size() <= input.size() + 1, "a resumed run keeps more than there was");
  { const JsonLines kept_again(path, kResumedStep); }
  Require(ReadFile(path) == rest, "a resumed run does not keep what it has kept");
  for (const EvaluationMetrics& evaluation : ReadEvaluations(path, {"top5"})) {
    Require(evaluation.at.step <= kResumedStep, "a later step was kept");
  }
  return !evaluations.empty();
}

DTRAIN_FUZZ_TARGET("metrics", Metrics);

}  // namespace
}  // namespace dtrain::fuzz
