#include "framework/core/check.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "framework/core/printable.h"
#include "framework/core/status_line.h"

namespace dtrain {
namespace {
std::atomic<int> check_rank{-1};
}  // namespace

void SetCheckRank(int rank) { check_rank = rank; }

namespace detail {

CheckFailure::CheckFailure(const char* file, int line, const char* condition) {
  message_ << file << ':' << line << ": check failed: " << condition << ' ';
}

CheckFailure::~CheckFailure() {
  // Aside would wait for the terminal's mutex, which this thread may hold.
  status_line::WipeAtOnce();
  const int rank = check_rank;
  const std::string message = PrintableText(message_.str());
  if (rank >= 0) {
    std::fprintf(stderr, "dtrain: rank %d: %s\n", rank, message.c_str());
  } else {
    std::fprintf(stderr, "dtrain: %s\n", message.c_str());
  }
  std::abort();
}

}  // namespace detail
}  // namespace dtrain
