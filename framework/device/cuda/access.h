// Access says what memory a kernel touches.
//
// Every launch names what its kernel reads and writes.  The GPU has no use for that.  The stand-in of the tests
// (tests/cuda/standin) opens only this memory while the kernel runs, so an access that is not named ends the test, and
// adds up the bytes, which decide the speed of most kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

namespace dtrain {

struct Access {
  const void* begin = nullptr;
  size_t span = 0;   // bytes from the first that may be touched to behind the last
  size_t bytes = 0;  // bytes that are touched, at most `span` unless some are touched again
  bool reads = false;
  bool writes = false;

  // Returns this range, of which only `count` values of `size` bytes are touched.
  Access Only(int64_t count, size_t size = 4) const {
    return {begin, span, span == 0 ? 0 : static_cast<size_t>(count) * size, reads, writes};
  }
  // Returns this range and the next ones, `count` in all, each beginning `apart` bytes behind the one before.
  Access Repeated(int64_t count, size_t apart) const {
    if (span == 0 || count == 0) return {};
    const auto times = static_cast<size_t>(count);
    return {begin, (times - 1) * apart + span, times * bytes, reads, writes};
  }
};

namespace access {
template <class T>
Access Of(const T* values, int64_t count, bool reads, bool writes) {
  const size_t bytes = values == nullptr ? 0 : static_cast<size_t>(count) * sizeof(T);
  return {values, bytes, bytes, reads, writes};
}
}  // namespace access

// Each returns the access to `count` values from `values` on, which is empty where it is null.
template <class T>
Access Reads(const T* values, int64_t count) {
  return access::Of(values, count, true, false);
}
template <class T>
Access Writes(T* values, int64_t count) {
  return access::Of(values, count, false, true);
}
template <class T>
Access Updates(T* values, int64_t count) {  // reads and writes
  return access::Of(values, count, true, true);
}
template <class T>
Access Stores(T* values, int64_t count, bool adds) {  // adds to what is there, or overwrites it
  return access::Of(values, count, adds, true);
}

// Describes a launch.  The accesses live as long as the expression that makes it.
struct KernelLaunch {
  const char* name;
  std::initializer_list<Access> accesses;
  std::initializer_list<Access> more = {};
  std::initializer_list<Access> rest = {};
  std::span<const Access> listed = {};  // those whose number is not known to the compiler
};

}  // namespace dtrain
