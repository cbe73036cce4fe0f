#include <regex>

#include "tests/tidy/checks.h"

namespace dtrain::tidy {

namespace {

struct Rule {
  std::string folder;
  std::set<std::string> exempt;
  std::regex pattern;
  std::string what;
};

const std::vector<Rule>& Rules() {
  // threaded_exchange runs the exchange thread of a real rank and times it; the actors and the
  // driver inside are handed events only.
  static const std::set<std::string> hosts = {"framework/strategies/threaded_exchange.h",
                                              "framework/strategies/threaded_exchange.cc",
                                              "framework/strategies/threaded_exchange_loop.cc"};
  static const std::vector<Rule> rules = {
      {"framework/strategies", hosts,
       std::regex(R"(\bWallNow\b|<chrono>|\bchrono::|\bclock_gettime\b|\bgettimeofday\b)"
                  R"(|\b(std::)?time\s*\(|\bclock\s*\()"),
       "reads a clock"},
      {"framework/strategies", hosts,
       std::regex(R"(<thread>|\bstd::j?thread\b|\bthis_thread\b|\bpthread_|<mutex>)"),
       "starts or blocks a thread"},
      {"framework",
       {},
       std::regex(R"(\bs?rand\s*\(|\brandom_device\b|\bmt19937|<random>)"),
       "draws uncounted random numbers (core/random.h has counted ones)"},
      {"layers",
       {},
       std::regex(R"(\bs?rand\s*\(|\brandom_device\b|\bmt19937|<random>)"),
       "draws uncounted random numbers (core/random.h has counted ones)"},
      {"datasets",
       {},
       std::regex(R"(\bs?rand\s*\(|\brandom_device\b|\bmt19937|<random>)"),
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
      if (Under(file.path, rule.folder) && !rule.exempt.contains(file.path)) {
        Apply(rule, file, findings);
      }
    }
  }
  return findings;
}

}  // namespace dtrain::tidy
