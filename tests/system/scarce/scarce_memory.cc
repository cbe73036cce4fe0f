// Limits memory as a test requests.  Loaded into the program (LD_PRELOAD), it grants DTRAIN_GRANTED bytes to large
// chunks together and refuses the rest, and a thread whose stack would exceed them.  At the end it writes the largest
// total to the file DTRAIN_TAKEN.  Small chunks are always granted and not counted: with `ulimit -v` the last caller
// that needs 8 bytes decides how a program ends.
//
// Chunks are those of malloc and related functions, and of anonymous mmap.
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

// glibc's own functions, under the names that it exports for this purpose.
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void* memory);
}

namespace {

constexpr size_t kLarge = 64 << 10;
constexpr size_t kStack = 8 << 20;
std::atomic<long> granted = LONG_MAX;  // no limit until the program begins
std::atomic<long> taken = 0, most = 0;

__attribute__((constructor)) void Begin() {
  if (const char* const bytes = std::getenv("DTRAIN_GRANTED")) granted = std::atol(bytes);
}

__attribute__((destructor)) void End() {
  const char* const path = std::getenv("DTRAIN_TAKEN");
  if (path == nullptr) return;
  char text[32];
  const int length = std::snprintf(text, sizeof(text), "%ld\n", most.load());
  const int file = ::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0 || ::write(file, text, static_cast<size_t>(length)) != length) ::_exit(99);
  ::close(file);
}

bool Refused(size_t bytes) {
  if (bytes < kLarge || taken + static_cast<long>(bytes) <= granted) return false;
  errno = ENOMEM;
  return true;
}

void Count(long bytes) {
  const long now = taken += bytes;
  long before = most;
  while (before < now && !most.compare_exchange_weak(before, now)) {
  }
}

long LargeBytesOf(void* memory) {
  const size_t bytes = memory == nullptr ? 0 : ::malloc_usable_size(memory);
  return bytes < kLarge ? 0 : static_cast<long>(bytes);
}

void* Counted(void* memory) {
  if (const long bytes = LargeBytesOf(memory); bytes > 0) Count(bytes);
  return memory;
}

// The begin and length of a large anonymous mapping.
struct Mapping {
  std::atomic<void*> begin = nullptr;
  size_t bytes = 0;
};
Mapping mappings[4096];

}  // namespace

extern "C" {

void* malloc(size_t bytes) { return Refused(bytes) ? nullptr : Counted(__libc_malloc(bytes)); }

void* calloc(size_t count, size_t bytes) {
  size_t all = 0;
  if (!__builtin_mul_overflow(count, bytes, &all) && Refused(all)) return nullptr;
  return Counted(__libc_calloc(count, bytes));
}

void* realloc(void* memory, size_t bytes) {
  if (Refused(bytes)) return nullptr;
  const long before = LargeBytesOf(memory);
  void* const moved = __libc_realloc(memory, bytes);
  if (moved == nullptr && bytes > 0) return nullptr;
  Count(LargeBytesOf(moved) - before);
  return moved;
}

void* memalign(size_t alignment, size_t bytes) {
  return Refused(bytes) ? nullptr : Counted(__libc_memalign(alignment, bytes));
}

void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }

int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  void* const got = memalign(alignment, bytes);
  if (got == nullptr) return ENOMEM;
  *memory = got;
  return 0;
}

void free(void* memory) {
  taken -= LargeBytesOf(memory);
  __libc_free(memory);
}

void* mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  const bool counts = (flags & MAP_ANONYMOUS) != 0 && bytes >= kLarge;
  if (counts && Refused(bytes)) return MAP_FAILED;
  void* const begin =
      reinterpret_cast<void*>(::syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
  if (!counts || begin == MAP_FAILED) return begin;
  for (Mapping& mapping : mappings) {
    void* free_place = nullptr;
    if (!mapping.begin.compare_exchange_strong(free_place, begin)) continue;
    mapping.bytes = bytes;
    Count(static_cast<long>(bytes));
    break;
  }
  return begin;
}

int munmap(void* begin, size_t bytes) {
  for (Mapping& mapping : mappings) {
    if (mapping.begin != begin) continue;
    taken -= static_cast<long>(mapping.bytes);
    mapping.begin = nullptr;
    break;
  }
  return static_cast<int>(::syscall(SYS_munmap, begin, bytes));
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) {
  static auto* const next =
      reinterpret_cast<decltype(&pthread_create)>(::dlsym(RTLD_NEXT, "pthread_create"));
  return Refused(kStack) ? EAGAIN : next(thread, attributes, start, argument);
}
}
