// Memory that is not there: the error says what wanted how much.
#pragma once

#include <cstddef>
#include <new>
#include <string>
#include <utility>

#include "framework/core/error.h"

namespace dtrain {

class NoMemoryError : public UsageError {
 public:
  // `bytes` 0: nobody knows how many.  `what`: who wanted them, "data set cifar10"; "" where that is
  // not known yet (WithMemoryFor).
  explicit NoMemoryError(size_t bytes, const std::string& what = "");
  size_t bytes() const { return bytes_; }
  const std::string& what_for() const { return what_for_; }

 private:
  size_t bytes_;
  std::string what_for_;
};

// What `operator new` of this program throws.
class OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(size_t bytes) : bytes_(bytes) {}
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_;
};

// The same as an error that can be told.
NoMemoryError ToError(const std::bad_alloc& error);

// Throws NoMemoryError when the system would not grant `bytes` more.  They are not kept: it is asked
// before a library is called that dies when it gets none.
void RequireMemory(size_t bytes);

// Returns work(); an error about memory within it says what it was for, the innermost counts.
template <class Work>
auto WithMemoryFor(const std::string& what, Work&& work) -> decltype(work()) {
  try {
    return std::forward<Work>(work)();
  } catch (const NoMemoryError& error) {
    if (!error.what_for().empty()) throw;
    throw NoMemoryError(error.bytes(), what);
  } catch (const std::bad_alloc& error) {
    throw NoMemoryError(ToError(error).bytes(), what);
  }
}

}  // namespace dtrain
