// Which process something belongs to, in words that stay true.  A process number alone does not: it is used again,
// and it is another process's on another machine, after a boot and in another container.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace dtrain {

struct ProcessIdentity {
  std::string host;
  std::string boot;        // /proc/sys/kernel/random/boot_id
  std::string namespaces;  // of process numbers and of times, as /proc/self/ns names them
  int64_t pid = 0;
  uint64_t born = 0;  // the process's start, in the kernel's ticks since the boot
};

// None where the system does not tell all of it: without /proc, or with that of another namespace.
std::optional<ProcessIdentity> IdentityOfThisProcess();

// One line of JSON, and back: none where the text is not whole.
std::string ToText(const ProcessIdentity& process);
std::optional<ProcessIdentity> ParseIdentity(const std::string& text);

// True only where this process can tell for certain: it runs on the same host, since the same boot and in the same
// namespaces, and there the process is no more.  A zombie is no more, either.
bool HasEnded(const ProcessIdentity& process);

}  // namespace dtrain
