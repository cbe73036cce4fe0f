#include <regex>

#include "tests/tidy/checks.h"

namespace dtrain::tidy {

namespace {

struct Rule {
  std::string folder;
  std::string except;  // a folder inside it; "" for none
  std::regex pattern;
  std::string what;
};

const std::vector<Rule>& Rules() {
  static const std::regex clock(
      R"(\bWallNow\b|<chrono>|\bchrono::|\bclock_gettime\b|\bgettimeofday\b)"
      R"(|\b(std::)?time\s*\(|\bclock\s*\()");
  static const std::regex thread(
      R"(<thread>|\bstd::j?thread\b|\bthis_thread\b|\bpthread_|<mutex>)");
  // This folder runs and times the exchange thread of a real rank.
  static const std::string host = "framework/exchange/threaded";
  static const std::vector<Rule> rules = {
      {"framework/strategies", "", clock, "reads a clock"},
      {"framework/strategies", "", thread, "starts or blocks a thread"},
      {"framework/exchange", host, clock, "reads a clock"},
      {"framework/exchange", host, thread, "starts or blocks a thread"},
      {"framework", "", std::regex(R"(\bs?rand\s*\(|\brandom_device\b|\bmt19937|<random>)"),
       "draws uncounted random numbers (core/random.h has counted ones)"},
      {"layers", "", std::regex(R"(\bs?rand\s*\(|\brandom_device\b|\bmt19937|<random>)"),
       "draws uncounted random numbers (core/random.h has counted ones)"},
      {"datasets", "", std::regex(R"(\bs?rand\s*\(|\brandom_device\b|\bmt19937|<random>)"),
       "draws uncounted random numbers (core/random.h has counted ones)"},
  };
  return rules;
}

void Apply(const Rule& rule, const SourceFile& file, Findings& findings) {
  int number = 0;
  for (const std::string& line : LinesOf(WithoutComments(file.text))) {
    ++number;
    if (std::regex_search(line, rule.pattern)) {
      findings.push_back(file.path + ":" + std::to_string(number) + ": " + rule.what);
    }
  }
}

}  // namespace

Findings CheckPurity(const SourceTree& tree) {
  Findings findings;
  for (const SourceFile& file : tree) {
    if (!IsHeader(file) && !IsSource(file)) continue;
    for (const Rule& rule : Rules()) {
      if (Under(file.path, rule.folder) &&
          (rule.except.empty() || !Under(file.path, rule.except))) {
        Apply(rule, file, findings);
      }
    }
  }
  return findings;
}

Findings KindsAskedFor(const SourceTree& tree) {
  static const std::regex kind(
      R"(\bModelPlace::|\bnodes\(\) *[=!<>]|[.>]servers *(==|!=|<|>)|\bservers *(==|!=|<|>)|[.>]replicated\b)");
  Findings findings;
  for (const SourceFile& file : tree) {
    const bool product =
        Under(file.path, "framework") || Under(file.path, "layers") || Under(file.path, "datasets");
    const bool asks = !Under(file.path, "framework/strategies") &&
                      !Under(file.path, "framework/launch");  // servers of a job to be started
    if (!product || !asks || (!IsHeader(file) && !IsSource(file))) continue;
    int number = 0;
    for (const std::string& line : LinesOf(WithoutComments(file.text))) {
      ++number;
      if (!std::regex_search(line, kind)) continue;
      findings.push_back(file.path + ":" + std::to_string(number) + ":" + line);
    }
  }
  return findings;
}

}  // namespace dtrain::tidy
