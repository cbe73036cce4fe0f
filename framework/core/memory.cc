#include "framework/core/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

#include "framework/core/text.h"

namespace dtrain {

NoMemoryError::NoMemoryError(size_t bytes, const std::string& what)
    : UsageError(fmt::format("there is no memory{}{}",
                             bytes == 0 ? std::string()
                                        : fmt::format(" for {} more",
                                                      HumanBytes(static_cast<double>(bytes))),
                             what.empty() ? "" : ", for " + what),
                 "a smaller batch, or accumulate: micro-batches need less; `ulimit -v` may be a "
                 "limit, too"),
      bytes_(bytes),
      what_for_(what) {}

NoMemoryError ToError(const std::bad_alloc& error) {
  const auto* const ours = dynamic_cast<const OutOfMemory*>(&error);
  return NoMemoryError(ours == nullptr ? 0 : ours->bytes());
}

void RequireMemory(size_t bytes) {
  void* const probe =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (probe == MAP_FAILED) throw NoMemoryError(bytes);
  ::munmap(probe, bytes);
}

}  // namespace dtrain

// The sanitizers have their own operators; `weak` lets a program define its own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
[[gnu::weak]] void* operator new(size_t bytes) {
  if (void* const memory = std::malloc(std::max<size_t>(bytes, 1))) return memory;
  throw dtrain::OutOfMemory(bytes);
}
[[gnu::weak]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::weak]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
#endif
