// DT_CHECK(condition) << "values"; stops the program at a bug.
//
// Prints file, line, condition, the message and the rank (SetCheckRank), then aborts.  For faults of the user, files,
// peers or the machine throw an Error instead (error.h).
#pragma once

#include <sstream>

namespace dtrain {

void SetCheckRank(int rank);

namespace detail {

class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* condition);
  [[noreturn]] ~CheckFailure();
  std::ostream& stream() { return message_; }

 private:
  std::ostringstream message_;
};

struct Voidify {
  void operator&(std::ostream&) const {}
};

}  // namespace detail
}  // namespace dtrain

#define DT_CHECK(condition)            \
  (__builtin_expect(!!(condition), 1)) \
      ? (void)0                        \
      : ::dtrain::detail::Voidify() &  \
            ::dtrain::detail::CheckFailure(__FILE__, __LINE__, #condition).stream()
