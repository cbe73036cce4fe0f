// Errors for failed allocations: they name the size and its purpose.
#pragma once

#include <cstddef>
#include <new>
#include <string>
#include <utility>

#include "framework/core/error.h"

namespace dtrain {

class NoMemoryError : public UsageError {
 public:
  // `bytes` is 0 if the size is unknown.  `what` is the purpose, "data set cifar10"; "" if it is added later
  // (WithMemoryFor).
  explicit NoMemoryError(size_t bytes, const std::string& what = "");
  size_t bytes() const { return bytes_; }
  const std::string& what_for() const { return what_for_; }

 private:
  size_t bytes_;
  std::string what_for_;
};

// This program's `operator new` throws it.
class OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(size_t bytes) : bytes_(bytes) {}
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_;
};

// Converts to an error with a message for the user.
NoMemoryError ToError(const std::bad_alloc& error);

// Throws NoMemoryError if the system would not grant `bytes` more.  They are freed at once: the check precedes calls to
// libraries that abort when an allocation fails.
void RequireMemory(size_t bytes);

// Returns work(); adds `what` to a memory error that work() throws, unless an inner call named its purpose.
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
